#!/usr/bin/env bash
# Makes a virtual environment with what the programs here need.
# Usage: bash setup.sh [DIR]        (DIR: where it goes; default: .venv beside this file)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
venv=${1:-$here/.venv}
python3 -m venv "$venv"
"$venv/bin/pip" install --quiet -r "$here/requirements.txt"
"$venv/bin/python" -c 'import torch; print("PyTorch", torch.__version__, "with", torch.get_num_threads(), "threads")'
echo "use: $venv/bin/python"
