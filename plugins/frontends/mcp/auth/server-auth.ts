// Creates the resolver of each server's credential from its option `auth`, and checks the option.
import type { Context, Problem } from "tollgate/plugin";
import type { CredentialResolver, ServerCredential } from "../server-credential.ts";
import {
  createClientCredentialsResolver,
  createExchangeResolver,
  createTokenResolver,
  type GrantOptions,
  type SubjectTokens,
} from "./shared-credentials.ts";
import type { ConnectableServer, UserConnections } from "./user-connections.ts";

/** The option `auth` of a server. */
export interface ServerAuthOptions {
  readonly type: "none" | "token" | "client_credentials" | "token_exchange" | "user";
  readonly token?: string;
  readonly header?: string;
  readonly issuer?: string;
  readonly token_url?: string;
  readonly client_id?: string;
  readonly client_secret?: string;
  readonly scopes?: readonly string[];
  readonly audience?: string;
}

/** A server, as far as its credential is concerned. */
export interface AuthenticatedServer {
  readonly name: string;
  readonly url: string;
  readonly auth?: ServerAuthOptions;
}

/** Members of `auth` by type: those that are required, and others that are allowed. */
const MEMBERS: Readonly<
  Record<ServerAuthOptions["type"], readonly [readonly string[], readonly string[]]>
> = {
  none: [[], []],
  token: [["token"], ["header"]],
  client_credentials: [["client_id"], ["issuer", "token_url", "client_secret", "scopes"]],
  token_exchange: [["client_id"], ["issuer", "token_url", "client_secret", "scopes", "audience"]],
  user: [[], ["issuer", "client_id", "client_secret", "scopes"]],
};

/** Returns the problems of the option `auth`. `path` is its JSON pointer. */
export function* checkServerAuth(
  auth: ServerAuthOptions,
  path: string,
  hasConnections: boolean,
): Iterable<Problem> {
  const [required, allowed] = MEMBERS[auth.type];
  for (const name of required)
    if (!(name in auth)) yield { path, message: `the type ${auth.type} requires ${name}` };
  for (const name of Object.keys(auth))
    if (name !== "type" && !required.includes(name) && !allowed.includes(name))
      yield { path: `${path}/${name}`, message: `is not used by the type ${auth.type}` };
  const isGrant = auth.type === "client_credentials" || auth.type === "token_exchange";
  if (isGrant && (auth.issuer === undefined) === (auth.token_url === undefined))
    yield { path, message: "requires issuer or token_url, but not both" };
  // Otherwise the server chooses the party to which the secret is sent.
  if (auth.type === "user" && auth.client_secret !== undefined && auth.issuer === undefined)
    yield {
      path: `${path}/client_secret`,
      message: "client_secret requires issuer",
      hint: "set issuer to the authorization server that issued the secret",
    };
  if (auth.type === "user" && !hasConnections)
    yield {
      path,
      message: "the type user requires the option connections of the frontend",
      hint: "set connections.admin_url to the URL of the admin listener",
    };
}

/** Returns the servers whose users connect their own accounts. */
export const connectableServers = (
  servers: readonly AuthenticatedServer[],
): readonly ConnectableServer[] =>
  servers
    .filter(({ auth }) => auth?.type === "user")
    .map(({ name, url, auth }) => ({
      name,
      url,
      issuer: auth!.issuer,
      clientId: auth!.client_id,
      clientSecret: auth!.client_secret,
      scopes: auth!.scopes,
    }));

const NO_CREDENTIAL: ServerCredential = { headers: {}, owner: "shared" };

/** Returns the resolver of a server's credential. */
export function createServerAuth(
  ctx: Pick<Context, "fetch" | "shared" | "log">,
  server: AuthenticatedServer,
  of: { readonly connections: UserConnections | undefined; readonly subjects: SubjectTokens },
): CredentialResolver {
  const { url, auth } = server;
  switch (auth?.type) {
    case "token":
      return createTokenResolver(auth.token!, auth.header);
    case "client_credentials":
      return createClientCredentialsResolver(ctx, url, auth as GrantOptions);
    case "token_exchange":
      return createExchangeResolver(ctx, url, auth as GrantOptions, of.subjects);
    case "user":
      return of.connections!.resolverOf(connectableServers([server])[0]!);
    default:
      return { resolve: () => NO_CREDENTIAL };
  }
}
