"""The sections of the configuration, one a module.

A stage imports those that it reads and no others, so that its code digest covers them and no others.
"""
