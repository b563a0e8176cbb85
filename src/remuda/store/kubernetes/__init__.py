"""The backend for many machines: the same contract on a Kubernetes API server.

The API server is the truth. An informer per kind feeds the tables of the read side, in a scratch file that is thrown
away at the end, so reads cost the API server nothing and a restart costs one list per kind.
"""
