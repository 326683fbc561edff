"""`python -m unisono` is the program `unisono`."""

import sys

from unisono.cli.main import main

sys.exit(main())
