"""Run Harbor's validator over a folder, with the interpreter of the environment `harbor`."""

import json
import sys
from pathlib import Path

from harbor.utils.trajectory_validator import TrajectoryValidator

paths = sorted(Path(sys.argv[1]).glob("*.atif.json"))
errors = {}
for path in paths:
    validator = TrajectoryValidator()
    if not validator.validate(path):
        errors[path.name] = validator.errors
sys.stdout.write(json.dumps({"documents": len(paths), "errors": errors}))
