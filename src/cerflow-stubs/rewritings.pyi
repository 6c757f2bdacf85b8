from cerflow.api.rewritings import *
