// Connections of users to servers: OAuth's code flow with PKCE, and the refresh of tokens. Tokens
// stay in the vault. A client receives only the URL at which its user connects.
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { fail, OAuthError, type Context, type Json, type RequestHead } from "tollgate/plugin";
import type { CredentialResolver, ServerCredential } from "../server-credential.ts";
import { ServerError, URL_ELICITATION_REQUIRED } from "../tool-server.ts";
import type {
  CredentialOwner,
  CredentialVault,
  StoredCredential,
  UserCredential,
} from "./credential-vault.ts";
import {
  discoverAuthorizationServer,
  discoverResource,
  registerClient,
  requestToken,
  type AuthorizationServer,
  type OAuthClient,
} from "./oauth-client.ts";
import { seal, unseal, type SealKeys } from "./sealed-data.ts";

/** Path of the page at which users connect, on the admin listener. */
export const CONNECT_PATH = "/mcp/connect";
/** Path to which authorization servers redirect, before the name of the server. */
export const CALLBACK_PATH = `${CONNECT_PATH}/callback`;

/** Time for which a connect URL is valid, in milliseconds. */
const TICKET_MS = 3_600_000;
/** Time to sign in at the authorization server, in milliseconds. */
const FLOW_MS = 600_000;
/** Length of the lease in which one gateway refreshes a token, in milliseconds. */
const LEASE_MS = 30_000;
/** A token is refreshed when its remaining lifetime falls below this time, in milliseconds. */
const REFRESH_BEFORE_MS = 60_000;
/** Time for which a credential is used without reading the store, in milliseconds. */
const CACHE_MS = 5_000;
const MAX_CACHED = 10_000;
const POLL_MS = 200;
const SAVE_ATTEMPTS = 5;
/** Codes with which an authorization server rejects a refresh token permanently. */
const FINAL_CODES = new Set(["invalid_grant", "invalid_client", "unauthorized_client"]);

/** A server whose users connect their own accounts. */
export interface ConnectableServer {
  readonly name: string;
  readonly url: string;
  /** Issuer of the operator. Default: the metadata of the server names it. */
  readonly issuer?: string | undefined;
  readonly clientId?: string | undefined;
  readonly clientSecret?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
}

/** Client for which a user connects, as a connect URL states it. */
export interface ConnectTicket extends CredentialOwner {
  /** Issuer and subject of the client's token. Undefined for an API key. */
  readonly issuer?: string | undefined;
  readonly subject?: string | undefined;
}

/** State of one connection, without its tokens. */
export interface ConnectionState {
  readonly server: string;
  readonly state: "connected" | "expired" | "none";
}

interface Flow {
  readonly owner: CredentialOwner;
  readonly server: string;
  /** Person who started the flow, and who has to end it. */
  readonly person: string;
  readonly verifier: string;
  readonly issuer: string;
  readonly sendsIssuer: boolean;
  readonly tokenEndpoint: string;
  readonly client: OAuthClient;
  readonly resource: string;
  readonly expiresAt: number;
}

export interface UserConnectionsOptions {
  readonly ctx: Pick<Context, "fetch" | "log" | "shared">;
  readonly vault: CredentialVault;
  /** Keys for tickets and states in URLs. */
  readonly keys: SealKeys;
  /** URL of the admin listener, as browsers see it. */
  readonly adminUrl: string;
  readonly servers: readonly ConnectableServer[];
}

export class UserConnections {
  readonly #options: UserConnectionsOptions;
  readonly #instance = randomUUID();
  readonly #cached = new Map<string, { readonly at: number; readonly stored: StoredCredential }>();
  readonly #refreshes = new Map<string, Promise<StoredCredential>>();

  constructor(options: UserConnectionsOptions) {
    this.#options = options;
  }

  /** Returns the resolver of a server. It serves tools, prompts, and resources. */
  resolverOf(server: ConnectableServer): CredentialResolver {
    const toCredential = ({ credential, record }: StoredCredential): ServerCredential => ({
      headers: { authorization: `Bearer ${credential.accessToken}` },
      owner: record.key,
    });
    return {
      resolve: async (x) => toCredential(await this.#current(x, server)),
      renew: async (rejected, x, challenge) => {
        const stored = await this.#read(ownerOf(x).id, server.name);
        if (!stored) return this.#rejectUnconnected(x, server, challenge ?? undefined);
        const isNewer =
          toCredential(stored).headers["authorization"] !== rejected.headers["authorization"];
        return toCredential(
          isNewer ? stored : await this.#refresh(x, server, stored, challenge ?? undefined),
        );
      },
    };
  }

  /** Returns the URL at which the user of a client connects. */
  connectUrl(x: RequestHead, server?: string): string {
    return this.ticketUrl(ticketOf(x), server);
  }

  /** Returns the URL at which the user of this client connects. */
  ticketUrl(ticket: ConnectTicket, server?: string): string {
    const { adminUrl, keys } = this.#options;
    const content = { ...ticket, expiresAt: Date.now() + TICKET_MS };
    const sealed = seal(keys, ["ticket"], JSON.parse(JSON.stringify(content)) as Json);
    const url = new URL(adminUrl.replace(/\/$/, "") + CONNECT_PATH);
    if (server !== undefined) url.searchParams.set("server", server);
    // The fragment is sent to no server and is in no log.
    url.hash = `ticket=${sealed}`;
    return url.href;
  }

  /** Returns the client that a connect URL is for. Throws if the URL has expired. */
  openTicket(text: string): ConnectTicket {
    const opened = text.length > 8_192 ? undefined : unseal(this.#options.keys, ["ticket"], text);
    const ticket = opened as unknown as
      | (ConnectTicket & { readonly expiresAt: number })
      | undefined;
    if (!ticket || ticket.expiresAt < Date.now())
      return fail("invalid", "This link has expired. Repeat the request for a new link.", {
        code: "connect_link_expired",
      });
    return ticket;
  }

  /** Returns the states of a client's connections, in the order of the config. */
  async list(owner: string): Promise<readonly ConnectionState[]> {
    const { servers, vault } = this.#options;
    return Promise.all(
      servers.map(async ({ name }) => {
        const stored = await vault.find(owner, name);
        const state = stored ? (stored.state === "expired" ? "expired" : "connected") : "none";
        return { server: name, state } as const;
      }),
    );
  }

  /** Deletes the connection of a client. */
  async disconnect(owner: string, server: string): Promise<void> {
    this.#cached.delete(cacheKey(owner, server));
    await this.#options.vault.delete(owner, server);
  }

  /** Returns the URL at which a person authorizes the gateway for a client. */
  async start(owner: CredentialOwner, name: string, person: string): Promise<string> {
    const server = this.#find(name);
    return this.#withUserError(server, async () => {
      const { fetch } = this.#options.ctx;
      const found = await discoverResource(fetch, server.url, undefined).catch((error) => {
        if (server.issuer === undefined) throw error;
        return { resource: server.url, authorizationServers: [server.issuer], scopes: [] };
      });
      const issuer = server.issuer ?? found.authorizationServers[0]!;
      const authorization = await discoverAuthorizationServer(fetch, issuer);
      if (authorization.authorizationEndpoint === undefined)
        throw new OAuthError("invalid_response", "The metadata has no authorization endpoint.");
      const client = await this.#clientFor(server, authorization);
      const verifier = randomBytes(32).toString("base64url");
      const flow: Flow = {
        owner: { id: owner.id, account: owner.account },
        server: name,
        person,
        verifier,
        issuer,
        sendsIssuer: authorization.sendsIssuer,
        tokenEndpoint: authorization.tokenEndpoint,
        client,
        resource: found.resource,
        expiresAt: Date.now() + FLOW_MS,
      };
      const scopes = server.scopes ?? found.scopes;
      return authorizationUrl(authorization.authorizationEndpoint, {
        response_type: "code",
        client_id: client.id,
        redirect_uri: this.#redirectUri(name),
        state: seal(this.#options.keys, ["flow"], JSON.parse(JSON.stringify(flow)) as Json),
        code_challenge: createHash("sha256").update(verifier).digest("base64url"),
        code_challenge_method: "S256",
        resource: found.resource,
        ...(scopes.length > 0 && { scope: scopes.join(" ") }),
      });
    });
  }

  /** Ends a flow: checks the response, and stores the tokens. Returns the name of the server. */
  async finish(
    person: string,
    response: {
      /** Server of the redirect URI. */
      server: string;
      code?: string | undefined;
      state: string;
      iss?: string | undefined;
      error?: string | undefined;
    },
  ): Promise<string> {
    const flow = this.#openFlow(response.state);
    if (flow.person !== person)
      return fail("forbidden", "Another person started this connection. Start again.", {
        code: "connect_other_person",
      });
    if (response.server !== flow.server)
      return fail("forbidden", "The response is for another server. Start again.", {
        code: "connect_other_server",
      });
    const isOther = response.iss !== undefined ? response.iss !== flow.issuer : flow.sendsIssuer;
    if (isOther)
      return fail("forbidden", "The response is from another authorization server.", {
        code: "connect_other_issuer",
      });
    if (response.code === undefined)
      return fail("forbidden", "The authorization server denied the connection.", {
        code: "connect_denied",
      });
    const server = this.#find(flow.server);
    const { code } = response;
    return this.#withUserError(server, async () => {
      const tokens = await requestToken(this.#options.ctx.fetch, flow.tokenEndpoint, flow.client, {
        grant_type: "authorization_code",
        code,
        redirect_uri: this.#redirectUri(flow.server),
        code_verifier: flow.verifier,
        resource: flow.resource,
      });
      await this.#options.vault.save(flow.owner, flow.server, {
        ...tokens,
        issuer: flow.issuer,
        tokenEndpoint: flow.tokenEndpoint,
        clientId: flow.client.id,
        clientSecret: flow.client.secret,
        clientAuth: flow.client.auth,
        resource: flow.resource,
      });
      this.#cached.delete(cacheKey(flow.owner.id, flow.server));
      return flow.server;
    });
  }

  #openFlow(state: string): Flow {
    const opened = state.length > 16_384 ? undefined : unseal(this.#options.keys, ["flow"], state);
    const flow = opened as unknown as Flow | undefined;
    return flow && flow.expiresAt >= Date.now()
      ? flow
      : fail("invalid", "The connection was started more than 10 minutes ago. Start again.", {
          code: "connect_link_expired",
        });
  }

  /** Each server has its own URI, so that a response for one server cannot end a flow of another. */
  #redirectUri(server: string): string {
    const { adminUrl } = this.#options;
    return `${adminUrl.replace(/\/$/, "")}${CALLBACK_PATH}/${encodeURIComponent(server)}`;
  }

  #find(name: string): ConnectableServer {
    return (
      this.#options.servers.find((each) => each.name === name) ??
      fail("not_found", "No server of this name has connections of users.", {
        code: "unknown_mcp_server",
      })
    );
  }

  /** Returns the operator's client, or registers one. A registered client is used for a day. */
  async #clientFor(server: ConnectableServer, of: AuthorizationServer): Promise<OAuthClient> {
    if (server.clientId !== undefined) return { id: server.clientId, secret: server.clientSecret };
    const { ctx } = this.#options;
    const clients = ctx.shared("registered clients", () => new Map<string, RegisteredClient>());
    const redirectUri = this.#redirectUri(server.name);
    const key = JSON.stringify([of.issuer, redirectUri]);
    const known = clients.get(key);
    if (known && known.until > Date.now()) return known.client;
    const client = await registerClient(ctx.fetch, of, redirectUri);
    clients.set(key, { client, until: Date.now() + 86_400_000 });
    return client;
  }

  /** Logs the details of an error, and throws a fault for the person. */
  async #withUserError<T>(server: ConnectableServer, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof OAuthError)) throw error;
      const { code, message } = error;
      this.#options.ctx.log.warn({ server: server.name, code }, `cannot connect: ${message}`);
      return fail("upstream", `Cannot connect to ${server.name}: ${message}`, {
        code: "mcp_connect_failed",
      });
    }
  }

  /** Returns a credential that is valid for a while. */
  async #current(x: RequestHead, server: ConnectableServer): Promise<StoredCredential> {
    const stored = await this.#read(ownerOf(x).id, server.name);
    if (!stored || stored.state === "expired") return this.#rejectUnconnected(x, server);
    const { expiresAt, refreshToken } = stored.credential;
    // A token that cannot be refreshed is used until the server rejects it. Its end may be assumed.
    if (refreshToken === undefined || expiresAt > Date.now() + REFRESH_BEFORE_MS) return stored;
    return this.#refresh(x, server, stored);
  }

  async #read(owner: string, server: string): Promise<StoredCredential | undefined> {
    const key = cacheKey(owner, server);
    const known = this.#cached.get(key);
    if (known && performance.now() - known.at < CACHE_MS) return known.stored;
    const stored = await this.#options.vault.find(owner, server);
    if (stored) this.#remember(key, stored);
    else this.#cached.delete(key);
    return stored;
  }

  #remember(key: string, stored: StoredCredential): void {
    this.#cached.delete(key);
    if (this.#cached.size >= MAX_CACHED) this.#cached.delete(this.#cached.keys().next().value!);
    this.#cached.set(key, { at: performance.now(), stored });
  }

  /** Refreshes a credential once, however many requests of this process wait for it. */
  async #refresh(
    x: RequestHead,
    server: ConnectableServer,
    stored: StoredCredential,
    challenge?: string,
  ): Promise<StoredCredential> {
    const owner = ownerOf(x).id;
    const key = cacheKey(owner, server.name);
    let pending = this.#refreshes.get(key);
    if (!pending) {
      pending = this.#refreshInTurn(owner, server, stored, challenge !== undefined);
      this.#refreshes.set(key, pending);
      pending.finally(() => this.#refreshes.delete(key)).catch(() => {});
    }
    const refreshed = await pending;
    if (refreshed.state === "expired") return this.#rejectUnconnected(x, server, challenge);
    this.#remember(key, refreshed);
    return refreshed;
  }

  /**
   * Refreshes a credential under a lease, so that only one gateway uses the refresh token. Waits if
   * another gateway has the lease, and takes it over when it ends.
   * @param isRejected Whether the server rejected the access token.
   */
  async #refreshInTurn(
    owner: string,
    server: ConnectableServer,
    stored: StoredCredential,
    isRejected: boolean,
  ): Promise<StoredCredential> {
    const { vault } = this.#options;
    const giveUpAt = performance.now() + 2 * LEASE_MS;
    for (;;) {
      const current = await vault.find(owner, server.name);
      if (!current) return { ...stored, state: "expired" };
      const { credential, state, record } = current;
      const isNewer = credential.accessToken !== stored.credential.accessToken;
      if (state === "expired" || (isNewer && credential.expiresAt > Date.now())) return current;
      if (state === "refreshing" && (record.dueAt ?? 0) > Date.now()) {
        // The old token is used while another gateway refreshes it.
        if (!isRejected && credential.expiresAt > Date.now()) return current;
        if (performance.now() > giveUpAt)
          return fail("unavailable", "The access token is being refreshed. Retry.", {
            code: "token_refresh_busy",
          });
        await sleep(POLL_MS);
        continue;
      }
      const leased = await vault.lease(current, this.#instance, Date.now() + LEASE_MS);
      if (leased) return this.#refreshLeased(leased, server, isRejected);
    }
  }

  async #refreshLeased(
    leased: StoredCredential,
    server: ConnectableServer,
    isRejected: boolean,
  ): Promise<StoredCredential> {
    const { vault, ctx } = this.#options;
    const { credential, record } = leased;
    let next: UserCredential;
    try {
      next = await refreshTokens(ctx.fetch, credential);
    } catch (error) {
      const isFinal = error instanceof OAuthError && FINAL_CODES.has(error.code);
      ctx.log.warn(
        { server: server.name, code: error instanceof OAuthError ? error.code : undefined },
        isFinal ? "user has to connect again" : "token of user not refreshed",
      );
      const state = isFinal ? "expired" : "connected";
      const left = await vault.finish(leased, server.name, state, credential);
      const current = left ?? (await vault.find(record.key, server.name));
      if (!current || !isSameConnection(current, leased))
        return current ?? { ...leased, state: "expired" };
      if (isFinal) return left ?? { ...leased, state: "expired" };
      if (!isRejected && credential.expiresAt > Date.now())
        return { ...leased, state: "connected" };
      return fail("unavailable", "The authorization server does not respond. Retry later.", {
        code: "token_refresh_failed",
      });
    }
    return this.#keep(leased, server, next);
  }

  /**
   * Stores refreshed tokens, unless the connection was deleted or replaced during the refresh. A new
   * refresh token often replaces the old refresh token, so it must not be lost.
   */
  async #keep(
    leased: StoredCredential,
    server: ConnectableServer,
    next: UserCredential,
  ): Promise<StoredCredential> {
    const { vault } = this.#options;
    let held = leased;
    for (let attempt = 1; attempt <= SAVE_ATTEMPTS; attempt++)
      try {
        const saved = await vault.finish(held, server.name, "connected", next);
        if (saved) return saved;
        // The lease was lost. The record shows whether it is still the same connection.
        const current = await vault.find(leased.record.key, server.name);
        if (!current) return { ...leased, state: "expired" };
        if (!isSameConnection(current, leased)) return current;
        held = current;
      } catch (error) {
        if (attempt === SAVE_ATTEMPTS) throw error;
        await sleep(POLL_MS * attempt);
      }
    return fail("unavailable", "The access token is being refreshed. Retry.", {
      code: "token_refresh_busy",
    });
  }

  /** Throws the error that asks the client's user to connect. */
  #rejectUnconnected(x: RequestHead, { name }: ConnectableServer, challenge?: string): never {
    const url = this.connectUrl(x, name);
    const message = `Connect your account for ${name}.`;
    throw new ServerError(`${message} Open ${url}`, {
      code: URL_ELICITATION_REQUIRED,
      progress: "rejected",
      data: { elicitations: [{ mode: "url", elicitationId: randomUUID(), url, message }] },
      challenge: challenge ?? "Bearer",
    });
  }
}

interface RegisteredClient {
  readonly client: OAuthClient;
  readonly until: number;
}

async function refreshTokens(
  fetch: Context["fetch"],
  credential: UserCredential,
): Promise<UserCredential> {
  const { refreshToken, tokenEndpoint, clientId, clientSecret, clientAuth, resource } = credential;
  if (refreshToken === undefined)
    throw new OAuthError("invalid_grant", "There is no refresh token.");
  const client = { id: clientId, secret: clientSecret, ...(clientAuth && { auth: clientAuth }) };
  const tokens = await requestToken(fetch, tokenEndpoint, client, {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
    resource,
  });
  return { ...credential, ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
}

function authorizationUrl(endpoint: string, parameters: Readonly<Record<string, string>>): string {
  const url = new URL(endpoint);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  return url.href;
}

/** Whether a record still has the refresh token that was read from it before. */
const isSameConnection = (
  { credential: now }: StoredCredential,
  { credential: before }: StoredCredential,
): boolean => (now.refreshToken ?? now.accessToken) === (before.refreshToken ?? before.accessToken);

const cacheKey = (owner: string, server: string): string => JSON.stringify([owner, server]);

function ownerOf({ identity }: RequestHead): CredentialOwner {
  if (!identity) return fail("unauthenticated", "Send an API key.", { code: "missing_api_key" });
  return { id: identity.id, account: identity.account ?? undefined };
}

const ticketOf = (x: RequestHead): ConnectTicket => ({
  ...ownerOf(x),
  issuer: x.identity?.accessToken?.issuer,
  subject: x.identity?.accessToken?.subject,
});
