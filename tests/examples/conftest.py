import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.append(str(EXAMPLES))  # as it is for a script in that folder
