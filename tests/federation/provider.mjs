// An OpenID provider (npm: oidc-provider) on a free port, with the people, the client and the faults that its one
// argument says, as JSON: {"client": {...}, "accounts": {"login": {"email": ..., "email_verified": ...}},
// "inIdToken": true, "authMethod": "client_secret_basic"}.
// Its own development pages ask for a login (any password will do) and for consent. Prints its issuer when it is ready.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const { client, accounts, inIdToken, authMethod } = JSON.parse(process.argv[2]);

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{ ...client, token_endpoint_auth_method: authMethod }],
    clientAuthMethods: [authMethod],
    claims: { openid: ['sub'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: !inIdToken,
    pkce: { required: () => true },
    cookies: { keys: ['a key for this run of the tests alone'] },
    findAccount: (_, id) => (id in accounts ? { accountId: id, claims: () => ({ sub: id, ...accounts[id] }) } : undefined),
  });
  server.on('request', provider.callback());
  console.log(issuer);
});
