"""What the tests of environments need before anything is imported."""

import os

# dm_control looks for a display as soon as it is imported; the tests only use its physics.
os.environ.setdefault("MUJOCO_GL", "disabled")
