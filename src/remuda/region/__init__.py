"""Region service: networks, servers, images and storage, over the providers of its regions."""
