// Credentials for servers that are not of a user's account, and the frontend as a resource server.
import { createHash } from "node:crypto";
import { describe, expect, it } from "vitest";
import type { RequestHead } from "tollgate/plugin";
import { ResourceServer } from "../../../../plugins/frontends/mcp/auth/resource-server.ts";
import {
  checkServerAuth,
  createServerAuth,
  type ServerAuthOptions,
} from "../../../../plugins/frontends/mcp/auth/server-auth.ts";
import { SubjectTokens } from "../../../../plugins/frontends/mcp/auth/shared-credentials.ts";
import type { ServerCredential } from "../../../../plugins/frontends/mcp/server-credential.ts";
import { FakeAuthorization, ISSUER, RESOURCE } from "./fake-authorization.ts";

const CLIENT_TOKEN = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJhbm5hIn0.CANARY";
const client = (
  of: Partial<NonNullable<RequestHead["identity"]>["accessToken"]> = {},
  path = "/mcp",
) =>
  ({
    path,
    credentialSources: ["authorization"],
    identity: {
      id: "jwt:corp:anna",
      accessToken: {
        issuer: ISSUER,
        subject: "anna",
        audience: [],
        scopes: [],
        digest: createHash("sha256").update(CLIENT_TOKEN).digest("hex"),
        ...of,
      },
    },
  }) as unknown as RequestHead;
const byKey = {
  path: "/mcp",
  credentialSources: ["authorization"],
  identity: { id: "key_1" },
} as unknown as RequestHead;

function resolver(auth: ServerAuthOptions, subjects = new SubjectTokens()) {
  const authorization = new FakeAuthorization({ lifetimeS: 3_600 });
  const shared = new Map<string, object>();
  const ctx = {
    fetch: authorization.fetch as never,
    log: {} as never,
    shared: ((key: string, make: () => object) =>
      shared.get(key) ?? (shared.set(key, make()), shared.get(key))) as never,
  };
  const of = createServerAuth(
    ctx,
    { name: "s", url: RESOURCE, auth },
    { connections: undefined, subjects },
  );
  const tokenRequests = () =>
    authorization.requests
      .filter(({ url }) => url.endsWith("/token"))
      .map(({ body }) => Object.fromEntries(body));
  return { of, authorization, subjects, tokenRequests };
}

describe("a fixed token", () => {
  it("is sent in its header", async () => {
    expect(await resolver({ type: "token", token: "t" }).of.resolve(byKey)).toEqual({
      headers: { authorization: "Bearer t" },
      owner: "shared",
    });
    expect(
      await resolver({ type: "token", token: "t", header: "X-API-Key" }).of.resolve(byKey),
    ).toEqual({ headers: { "x-api-key": "t" }, owner: "shared" });
    expect(await resolver({ type: "none" }).of.resolve(byKey)).toEqual({
      headers: {},
      owner: "shared",
    });
  });
});

describe("client credentials", () => {
  it("are requested once for all clients, and again if the server rejects them", async () => {
    const { of, tokenRequests } = resolver({
      type: "client_credentials",
      issuer: ISSUER,
      client_id: "ours",
      client_secret: "s",
      scopes: ["a", "b"],
    });
    const [first, second] = (await Promise.all([of.resolve(byKey), of.resolve(client())])) as [
      ServerCredential,
      ServerCredential,
    ];
    expect(second).toEqual(first);
    expect(tokenRequests()).toEqual([
      {
        grant_type: "client_credentials",
        scope: "a b",
        resource: RESOURCE,
        client_id: "ours",
        client_secret: "s",
      },
    ]);
    const renewed = await Promise.all([
      of.renew!(first, byKey, "Bearer"),
      of.renew!(first, client(), "Bearer"),
    ]);
    expect(renewed[0]).toEqual(renewed[1]);
    expect(renewed[0]).not.toEqual(first);
    expect(tokenRequests()).toHaveLength(2);
  });

  it("are an error of the gateway if the issuer denies them", async () => {
    const { of, authorization } = resolver({
      type: "client_credentials",
      token_url: `${ISSUER}/token`,
      client_id: "ours",
    });
    authorization.isDown = true;
    await expect(Promise.resolve(of.resolve(byKey))).rejects.toThrow(
      "No token for the server: login.example.com responded with status 503.",
    );
  });
});

describe("a token exchange", () => {
  const auth: ServerAuthOptions = {
    type: "token_exchange",
    issuer: ISSUER,
    client_id: "ours",
    audience: "tracker",
  };

  it("sends the client's token to the issuer, and never to the server", async () => {
    const { of, subjects, authorization, tokenRequests } = resolver(auth);
    subjects.remember(CLIENT_TOKEN);
    const credential = await of.resolve(client());
    expect(credential.owner).toBe("jwt:corp:anna");
    expect(JSON.stringify(credential)).not.toContain(CLIENT_TOKEN);
    expect(tokenRequests()).toMatchObject([
      { subject_token: CLIENT_TOKEN, audience: "tracker", resource: RESOURCE },
    ]);
    for (const { url, body } of authorization.requests)
      if (String(body).includes("CANARY"))
        expect(new URL(url).origin).toBe("https://login.example.com");
    expect(await of.resolve(client())).toEqual(credential);
    expect(tokenRequests()).toHaveLength(1);
  });

  it("requires a validated token", async () => {
    const { of, subjects } = resolver(auth);
    subjects.remember(CLIENT_TOKEN);
    await expect(of.resolve(byKey)).rejects.toThrow("not an API key");
    await expect(of.resolve(client({ digest: "of another token" }))).rejects.toThrow(
      "not an API key",
    );
  });
});

describe("the option auth", () => {
  it("has the members of its type", () => {
    const problems = (auth: ServerAuthOptions, has = false) =>
      [...checkServerAuth(auth, "/servers/a/auth", has)].map(
        ({ path, message }) => `${path} ${message}`,
      );
    expect(problems({ type: "token", token: "t" })).toEqual([]);
    expect(problems({ type: "token" })).toEqual(["/servers/a/auth the type token requires token"]);
    expect(problems({ type: "none", token: "t" })).toEqual([
      "/servers/a/auth/token is not used by the type none",
    ]);
    expect(problems({ type: "client_credentials", client_id: "a" })).toEqual([
      "/servers/a/auth requires issuer or token_url, but not both",
    ]);
    expect(problems({ type: "user" })).toEqual([
      "/servers/a/auth the type user requires the option connections of the frontend",
    ]);
    expect(problems({ type: "user" }, true)).toEqual([]);
    const own = { type: "user", client_id: "ours", client_secret: "s" } as const;
    expect(problems(own, true)).toEqual([
      "/servers/a/auth/client_secret client_secret requires issuer",
    ]);
    expect(problems({ ...own, issuer: "https://login.example.com" }, true)).toEqual([]);
    expect(problems({ type: "user", client_id: "ours" }, true)).toEqual([]);
  });
});

describe("the resource server", () => {
  const server = new ResourceServer({
    resource: "https://gateway.example.com/",
    servers: [ISSUER],
    scopes: { "repo:read": ["github/get_*"], all: ["*"] },
  });

  it("accepts tokens for the path of the request, and for a path that contains it", () => {
    const check = (audience: string[], path: string) => {
      try {
        server.assertAudience(client({ audience }, path));
        return "accepted";
      } catch (error) {
        return (error as Error).message;
      }
    };
    const base = "https://gateway.example.com";
    expect(check([`${base}/mcp`], "/mcp/github")).toBe("accepted");
    expect(check(["tollgate", `${base}/mcp/github`], "/mcp/github")).toBe("accepted");
    expect(check([base], "/mcp/github")).toBe("accepted");
    for (const audience of [
      [`${base}/mcp/github`, "/mcp/other"],
      [`${base}/mcp/git`],
      ["tollgate"],
      [],
      ["https://gateway.example.com.evil.example/mcp"],
    ])
      expect(check(audience, "/mcp/linear")).toBe(`The token is not for ${base}/mcp/linear.`);
    expect(server.assertAudience(byKey)).toBeUndefined();
  });

  it("permits the tools of the token's scopes", () => {
    expect(server.toolsOf(client({ scopes: ["repo:read", "other", "__proto__"] }))).toEqual([
      "github/get_*",
    ]);
    expect(server.toolsOf(client())).toEqual([]);
    expect(server.toolsOf(byKey)).toBeUndefined();
  });

  it("tells a client without a valid credential where to get one", () => {
    const fault = { kind: "unauthenticated", message: "" } as const;
    const metadata =
      'resource_metadata="https://gateway.example.com/.well-known/oauth-protected-resource/mcp/github"';
    expect(server.challenge(fault, { path: "/mcp/github", credentialSources: [] })).toEqual({
      "www-authenticate": `Bearer ${metadata}, scope="repo:read all"`,
    });
    expect(
      server.challenge(fault, { path: "/mcp/github", credentialSources: ["authorization"] }),
    ).toEqual({
      "www-authenticate": `Bearer error="invalid_token", ${metadata}, scope="repo:read all"`,
    });
    expect(server.challenge({ kind: "forbidden", message: "" }, byKey)).toBeUndefined();
  });

  it("describes each path at which MCP is served", () => {
    const [root, each] = server.routes((path) => path === "/mcp/github") as unknown as {
      handle(x: object): { body: unknown };
    }[];
    expect(root!.handle({}).body).toEqual({
      resource: "https://gateway.example.com/mcp",
      authorization_servers: [ISSUER],
      bearer_methods_supported: ["header"],
      scopes_supported: ["repo:read", "all"],
    });
    expect(
      each!.handle({ path: "/.well-known/oauth-protected-resource/mcp/github" }).body,
    ).toMatchObject({ resource: "https://gateway.example.com/mcp/github" });
    expect(() =>
      each!.handle({ path: "/.well-known/oauth-protected-resource/mcp/secret" }),
    ).toThrow("not served");
  });
});
