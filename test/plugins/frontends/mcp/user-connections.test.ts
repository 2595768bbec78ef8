// Accounts of users at servers: the flow that connects them, the vault that keeps their tokens, and the refresh by several gateways.
import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { createMemoryJobs } from "tollgate/store";
import type { JobRecord, JobStore, RequestHead } from "tollgate/plugin";
import {
  CredentialVault,
  vaultKeys,
} from "../../../../plugins/frontends/mcp/auth/credential-vault.ts";
import {
  UserConnections,
  type ConnectableServer,
} from "../../../../plugins/frontends/mcp/auth/user-connections.ts";
import {
  FakeAuthorization,
  ISSUER,
  RESOURCE,
  type AuthorizationOptions,
} from "./fake-authorization.ts";

const SERVER: ConnectableServer = { name: "tracker", url: RESOURCE };
const KEYS = [Buffer.alloc(32, 1)];
const request = (id = "anna", accessToken?: { issuer: string; subject: string }) =>
  ({
    path: "/mcp",
    identity: {
      id,
      account: "acme",
      ...(accessToken && { accessToken: { ...accessToken, audience: [], scopes: [], digest: "" } }),
    },
  }) as unknown as RequestHead;

/** Several gateways on one store. */
function fleet({
  options = {},
  gateways = 1,
  jobs = createMemoryJobs(),
  servers = [SERVER],
}: {
  options?: AuthorizationOptions;
  gateways?: number;
  jobs?: JobStore;
  servers?: ConnectableServer[];
} = {}) {
  const authorization = new FakeAuthorization(options);
  const lines: string[] = [];
  const log = (fields: object, message: string) =>
    void lines.push(JSON.stringify([fields, message]));
  const of = Array.from({ length: gateways }, () => {
    const shared = new Map<string, object>();
    return new UserConnections({
      ctx: {
        fetch: authorization.fetch as never,
        log: { debug: log, info: log, warn: log, error: log },
        shared: ((key: string, make: () => object) =>
          shared.get(key) ?? (shared.set(key, make()), shared.get(key))) as never,
      },
      vault: new CredentialVault(jobs, KEYS, "mcp"),
      keys: KEYS,
      adminUrl: "https://admin.example.com/",
      servers,
    });
  });
  const [connections] = of as [UserConnections];
  const connect = async (id = "anna", person = "admin:operator::oidc:x 1") =>
    connections.finish(
      person,
      authorization.authorize(await connections.start({ id, account: "acme" }, "tracker", person)),
    );
  const token = async (at = connections, id = "anna") =>
    String((await at.resolverOf(SERVER).resolve(request(id))).headers["authorization"]).replace(
      "Bearer ",
      "",
    );
  return { authorization, jobs, lines, all: of, connections, connect, token };
}

const message = (work: Promise<unknown>) =>
  work.then(
    () => "none",
    (error: Error) => error.message,
  );

describe("a connection", () => {
  it("starts with the metadata of the server and its issuer, and ends with a token", async () => {
    const { authorization, connections, token } = fleet();
    const url = new URL(
      await connections.start({ id: "anna", account: undefined }, "tracker", "p"),
    );
    expect(url.origin + url.pathname).toBe(`${ISSUER}/authorize`);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({
      response_type: "code",
      code_challenge_method: "S256",
      resource: RESOURCE,
      scope: "read write",
      redirect_uri: "https://admin.example.com/mcp/connect/callback/tracker",
      client_id: "registered https://admin.example.com/mcp/connect/callback/tracker",
    });
    expect(await connections.finish("p", authorization.authorize(url.href))).toBe("tracker");
    expect(authorization.isValid(await token())).toBe(true);
    expect(await connections.list("anna")).toEqual([{ server: "tracker", state: "connected" }]);
    expect(await connections.list("bob")).toEqual([{ server: "tracker", state: "none" }]);
  });

  it("is requested with a URL if it is missing, for every method alike", async () => {
    const { connections } = fleet();
    const resolver = connections.resolverOf(SERVER);
    const error = await Promise.resolve(resolver.resolve(request())).catch((e: unknown) => e);
    expect(error).toMatchObject({
      code: -32_042,
      data: { elicitations: [{ mode: "url", message: "Connect your account for tracker." }] },
    });
    const url = new URL(
      (error as { data: { elicitations: { url: string }[] } }).data.elicitations[0]!.url,
    );
    expect(url.origin + url.pathname + url.search).toBe(
      "https://admin.example.com/mcp/connect?server=tracker",
    );
    expect(connections.openTicket(url.hash.slice("#ticket=".length))).toMatchObject({
      id: "anna",
      account: "acme",
    });
  });

  it("ends only for the person who started it, with the issuer, and once", async () => {
    const { authorization, connections } = fleet();
    const start = async () =>
      authorization.authorize(
        await connections.start({ id: "anna", account: undefined }, "tracker", "p"),
      );
    const back = await start();
    expect(await message(connections.finish("q", back))).toContain("Another person");
    expect(
      await message(connections.finish("p", { ...back, iss: "https://evil.example" })),
    ).toContain("another authorization server");
    expect(await message(connections.finish("p", { ...back, iss: undefined }))).toContain(
      "another authorization server",
    );
    expect(await message(connections.finish("p", { ...back, state: `A${back.state}` }))).toContain(
      "Start again",
    );
    expect(
      await message(connections.finish("p", { ...back, code: undefined, error: "access_denied" })),
    ).toContain("denied");
    expect(await message(connections.finish("p", { ...back, server: "other" }))).toContain(
      "another server",
    );
    expect(authorization.requests.filter(({ url }) => url.endsWith("/token"))).toEqual([]);
    expect(await connections.finish("p", back)).toBe("tracker");
    expect(await message(connections.finish("p", back))).toContain("invalid_grant");
  });

  it("is not started with metadata of another issuer or resource", async () => {
    for (const options of [
      { issuer: "https://evil.example" },
      { tokenEndpoint: "http://login.example.com/token" },
      { registers: false },
    ])
      expect(await message(fleet({ options }).connect())).toContain("Cannot connect to tracker");
    const other = fleet({ servers: [{ name: "tracker", url: "https://mcp.example.com/other" }] });
    expect(await message(other.connect())).toContain("Cannot connect to tracker");
  });

  it("uses the client of the operator, if there is one", async () => {
    const { connect, authorization } = fleet({
      options: { registers: false, sendsIssuer: false },
      servers: [{ ...SERVER, clientId: "ours", clientSecret: "secret", scopes: ["read"] }],
    });
    await connect();
    const [sent] = authorization.requests.filter(({ url }) => url.endsWith("/token"));
    expect(Object.fromEntries(sent!.body)).toMatchObject({
      client_id: "ours",
      client_secret: "secret",
      resource: RESOURCE,
    });
  });

  it("can be disconnected, and is not another user's", async () => {
    const { connect, connections, token } = fleet();
    await connect("anna");
    await connect("bob");
    expect(await token(connections, "anna")).not.toBe(await token(connections, "bob"));
    await connections.disconnect("anna", "tracker");
    expect(await message(token(connections, "anna"))).toContain("Connect your account");
    expect(await message(token(connections, "bob"))).toBe("none");
  });
});

describe("the vault", () => {
  const credential = {
    accessToken: "CANARY",
    refreshToken: "CANARY",
    expiresAt: 1,
    issuer: "i",
    tokenEndpoint: "t",
    clientId: "c",
    clientSecret: undefined,
    clientAuth: undefined,
    resource: "r",
  };

  it("contains ciphertext, which belongs to one user and server", async () => {
    const jobs = createMemoryJobs();
    const vault = new CredentialVault(jobs, KEYS, "mcp");
    await vault.save({ id: "anna", account: "acme" }, "tracker", credential);
    await vault.save({ id: "bob", account: "acme" }, "tracker", credential);
    const [bob, anna] = (await jobs.list({ kind: "user_credential" })).items as [
      JobRecord,
      JobRecord,
    ];
    expect(JSON.stringify([anna, bob])).not.toContain("CANARY");
    expect(await vault.find("anna", "tracker")).toMatchObject({
      credential: { accessToken: "CANARY" },
    });
    expect(await vault.find("anna", "other")).toBeUndefined();
    await jobs.put({ ...anna, version: anna.version + 1, data: bob.data });
    const other = anna.key === "anna" ? "anna" : "bob";
    expect(await vault.find(other, "tracker")).toBeUndefined();
  });

  it("reads what an earlier key encrypted, and writes with the newest", async () => {
    const jobs = createMemoryJobs();
    const ctx = { deriveSecret: () => Buffer.alloc(32, 9) };
    const at = (...secrets: string[]) => new CredentialVault(jobs, vaultKeys(ctx, secrets), "mcp");
    await at("old").save({ id: "anna", account: undefined }, "tracker", credential);
    expect(await at("new").find("anna", "tracker")).toBeUndefined();
    const found = (await at("new", "old").find("anna", "tracker"))!;
    await at("new", "old").finish(found, "tracker", "connected", credential);
    expect(await at("new").find("anna", "tracker")).toMatchObject({
      credential: { accessToken: "CANARY" },
    });
    expect(await at("old").find("anna", "tracker")).toBeUndefined();
  });
});

it("a token without a refresh token is used until the server rejects it", async () => {
  const { connect, connections, token } = fleet({ options: { refreshes: false } });
  await connect();
  const first = await token();
  vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 100 * 86_400_000 });
  try {
    expect(await token()).toBe(first);
    expect(await connections.list("anna")).toEqual([{ server: "tracker", state: "connected" }]);
    const resolver = connections.resolverOf(SERVER);
    const given = await resolver.resolve(request());
    expect(await message(resolver.renew!(given, request(), "Bearer"))).toContain(
      "Connect your account",
    );
    expect(await connections.list("anna")).toEqual([{ server: "tracker", state: "expired" }]);
  } finally {
    vi.useRealTimers();
  }
});

describe("the refresh of a token", () => {
  it("happens once, however many gateways and requests need it", async () => {
    const { authorization, all, connect, token } = fleet({
      gateways: 4,
      options: { lifetimeS: 30 },
    });
    await connect();
    await Promise.all(all.flatMap((each) => [token(each), token(each), token(each)]));
    // A token of 30 s is refreshed by each request, but never with a refresh token that was used.
    expect(authorization.grants.every(({ isRevoked }) => !isRevoked)).toBe(true);
    expect(authorization.isValid(await token())).toBe(true);
  });

  it("follows a rejected token, and its result is used by all gateways", async () => {
    const { authorization, all, connect } = fleet({ gateways: 2 });
    await connect();
    const [first, second] = all.map((each) => each.resolverOf(SERVER)) as never[] as {
      resolve(x: RequestHead): Promise<{ headers: object; owner: string }>;
      renew(r: unknown, x: RequestHead, c: string): Promise<{ headers: object }>;
    }[];
    const old = await first!.resolve(request());
    const [a, b] = await Promise.all([
      first!.renew(old, request(), "Bearer"),
      second!.renew(old, request(), "Bearer"),
    ]);
    expect(a).toEqual(b);
    expect(a.headers).not.toEqual(old.headers);
    expect(authorization.refreshes).toBe(1);
  });

  it("asks the user to connect again if the grant has ended", async () => {
    const { authorization, connect, connections, token } = fleet({ options: { lifetimeS: 30 } });
    await connect();
    authorization.grants[0]!.isRevoked = true;
    expect(await message(token())).toContain("Connect your account");
    expect(await connections.list("anna")).toEqual([{ server: "tracker", state: "expired" }]);
    await connect();
    expect(await message(token())).toBe("none");
  });

  it("uses the old token while the authorization server is down", async () => {
    const { authorization, connect, token } = fleet({ options: { lifetimeS: 30 } });
    await connect();
    authorization.isDown = true;
    const old = await token();
    expect(authorization.isValid(old)).toBe(true);
    authorization.isDown = false;
    expect(await token()).not.toBe(old);
  });

  it("continues at another gateway if one dies while it has the lease", async () => {
    const { authorization, all, connect, jobs, token } = fleet({
      gateways: 2,
      options: { lifetimeS: 30 },
    });
    await connect();
    // The first gateway takes the lease, and dies before its request is sent.
    const vault = new CredentialVault(jobs, KEYS, "mcp");
    const stored = (await vault.find("anna", "tracker"))!;
    expect(await vault.lease(stored, "dead", 1)).toBeDefined();
    expect(authorization.isValid(await token(all[1]))).toBe(true);
    expect(authorization.refreshes).toBe(1);
    expect((await vault.find("anna", "tracker"))!.state).toBe("connected");
  });

  it.each(["a disconnect", "an erasure"])(
    "writes nothing after %s during the request",
    async (how) => {
      const { authorization, connect, connections, jobs, token } = fleet({
        options: { lifetimeS: 30 },
      });
      await connect();
      authorization.onToken = async () => {
        if (how === "a disconnect") return connections.disconnect("anna", "tracker");
        const [record] = (await jobs.list({ kind: "user_credential" })).items;
        await jobs.delete(record!.id, record!.version);
      };
      expect(await message(token())).toContain("Connect your account");
      expect(authorization.refreshes).toBe(1);
      expect((await jobs.list({ kind: "user_credential" })).items).toEqual([]);
      expect(await connections.list("anna")).toEqual([{ server: "tracker", state: "none" }]);
    },
  );

  it.each(["succeeds", "is denied", "fails"])(
    "that %s keeps an account that was connected meanwhile",
    async (how) => {
      const { authorization, connect, connections, jobs, token } = fleet({
        options: { lifetimeS: 30 },
      });
      await connect();
      authorization.onToken = async () => {
        authorization.onToken = () => {};
        await connections.disconnect("anna", "tracker");
        await connect();
        if (how === "is denied") authorization.grants[0]!.isRevoked = true;
        authorization.isDown = how === "fails";
      };
      const used = await token();
      const second = authorization.grants[1]!;
      const stored = (await new CredentialVault(jobs, KEYS, "mcp").find("anna", "tracker"))!;
      expect(stored.credential.refreshToken).toBe(second.refreshToken);
      expect(second.accessTokens.has(used)).toBe(true);
    },
  );

  it("stores its tokens if only the lease was lost", async () => {
    const { authorization, connect, jobs, token } = fleet({ options: { lifetimeS: 30 } });
    await connect();
    const vault = new CredentialVault(jobs, KEYS, "mcp");
    authorization.onToken = async () => {
      authorization.onToken = () => {};
      expect(
        await vault.lease((await vault.find("anna", "tracker"))!, "other", Date.now() + 60_000),
      ).toBeDefined();
    };
    expect(authorization.isValid(await token())).toBe(true);
    expect(await vault.find("anna", "tracker")).toMatchObject({
      state: "connected",
      credential: { refreshToken: authorization.grants[0]!.refreshToken },
    });
  });

  it("loses no refresh token, whatever the store and the gateways do", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            gateway: fc.nat(2),
            fails: fc.array(fc.boolean(), { maxLength: 3 }),
            rejected: fc.boolean(),
          }),
          { minLength: 1, maxLength: 6 },
        ),
        fc.nat(3),
        async (steps, width) => {
          const inner = createMemoryJobs();
          let failures: boolean[] = [];
          const jobs: JobStore = {
            ...inner,
            // A store that is away for a moment.
            async put(record) {
              const fails =
                record.state === "connected" && record.version > 1 && failures.shift() === true;
              if (fails) throw new Error("away");
              return inner.put(record);
            },
          };
          const { authorization, all, connect, connections } = fleet({
            gateways: 3,
            jobs,
            options: { lifetimeS: 30 },
          });
          await connect();
          for (const { gateway, fails, rejected } of steps) {
            failures = [...fails];
            const each = all[gateway]!.resolverOf(SERVER);
            const calls = Array.from({ length: width + 1 }, async () => {
              const given = await each.resolve(request());
              return rejected ? each.renew!(given, request(), "Bearer") : given;
            });
            for (const { headers } of (await Promise.all(calls)) as unknown as {
              headers: { authorization: string };
            }[])
              expect(authorization.isValid(headers.authorization.slice(7))).toBe(true);
          }
          const stored = (await new CredentialVault(jobs, KEYS, "mcp").find("anna", "tracker"))!;
          expect(stored.credential.refreshToken).toBe(authorization.grants[0]!.refreshToken);
          expect(await connections.list("anna")).toEqual([
            { server: "tracker", state: "connected" },
          ]);
        },
      ),
      { numRuns: 12 },
    );
  });
});

describe("a token", () => {
  it("is in no record, log line, error, or request to another origin", async () => {
    const { authorization, connect, connections, jobs, lines, token } = fleet({
      options: { lifetimeS: 30 },
    });
    const errors: string[] = [];
    await connect();
    await token();
    authorization.isDown = true;
    errors.push(
      await message(
        connections.finish(
          "p",
          authorization.authorize(
            await connections.start({ id: "bob", account: undefined }, "tracker", "p"),
          ),
        ),
      ),
    );
    authorization.isDown = false;
    authorization.grants[0]!.isRevoked = true;
    errors.push(await message(token()));
    const records = (await jobs.list({})).items;
    const seen = JSON.stringify([records, lines, errors, connections.connectUrl(request())]);
    expect(lines.length).toBeGreaterThan(0);
    for (const secret of authorization.secrets) expect(seen).not.toContain(secret);
    for (const { url, headers, body } of authorization.requests) {
      const text = JSON.stringify([url, headers]);
      for (const secret of authorization.secrets) {
        expect(text).not.toContain(secret);
        if (String(body).includes(secret))
          expect(new URL(url).origin).toBe("https://login.example.com");
      }
    }
  });
});
