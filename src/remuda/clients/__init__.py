"""How services reach each other: for each port of one service, the other in this process, or over HTTP."""
