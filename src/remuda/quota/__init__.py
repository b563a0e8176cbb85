"""What objects cost: who pays, and how something is made, changed and given up together with what is held for it."""
