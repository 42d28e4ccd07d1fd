# The workflow on NVIDIA GPUs: docker build -f envs/cuda.Dockerfile -t stepcredit:cuda .
# vLLM brings the CUDA build of torch that it was compiled for, of CUDA 13.0, and compiles kernels for the GPU that it finds: hence
# the compiler of the same CUDA. The driver (580 or newer) comes from the host.
FROM nvidia/cuda:13.0.2-devel-ubuntu24.04
RUN apt-get update \
 && apt-get install -y --no-install-recommends python3 python3-dev python3-venv git \
 && rm -rf /var/lib/apt/lists/*
ENV VIRTUAL_ENV=/opt/stepcredit
ENV PATH=/opt/stepcredit/bin:$PATH
RUN python3 -m venv /opt/stepcredit
WORKDIR /workflow
COPY . .
RUN pip install --no-cache-dir ".[cuda,workflow]"
CMD ["snakemake", "--cores", "all", "results/report.html"]
