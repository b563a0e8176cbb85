"""A provider whose every call goes through one `providers.calls.Calls`.

**Keys.** A call is about what it names: its handle's name, a tenancy's, or an image's (`image_key`). A server and its
port have keys of their own: neither order of two calls about them does harm, since a provider refuses to remove a port
with a server behind it and to put two servers behind one port.

**Reads** are safe calls. So is each part of a listing, but only the first may be asked for again: an iterator that has
failed is at its end, and to go on with it would make what is missing look absent.

**Errors** pass unchanged. Events are no call: one listens to them for ever, and they go past.
"""
