"""python copied_folder.py FROM TO: TO holds what FROM holds, with its times, and nothing else."""

import shutil
import sys
from pathlib import Path

source, target = map(Path, sys.argv[1:])
for path in target.iterdir():
    path.unlink()
shutil.copytree(source, target, dirs_exist_ok=True)
