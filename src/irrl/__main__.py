import sys

from irrl.cli import main

sys.exit(main())
