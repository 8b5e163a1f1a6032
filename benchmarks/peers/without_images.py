"""Stand-ins for torchvision and transformers, where these are not installed.

Every process of the environment of OpenDataVal imports this when it starts.
"""

import importlib.util
import sys
from unittest.mock import MagicMock

IMAGES = ("torchvision", "torchvision.transforms", "torchvision.transforms.functional", "torchvision.datasets")

for names in (IMAGES, ("transformers",)):
    if importlib.util.find_spec(names[0]) is None:
        sys.modules.update({name: MagicMock() for name in names})
