from cerflow.api.definitions import *
