import sys

from irrl.cli.main import main

sys.exit(main())
