// Sign-ins at a fleet of gateways on PostgreSQL: the page, the polls, and the requests of one sign-in
// reach different gateways, and a key that is revoked at one of them ends its tokens at all of them.
import { expect, it } from "vitest";
import { ask, refresh, signIn } from "../../kit/device-flow.ts";
import { hasPostgres, startPostgres, postgresStoreYaml } from "../../kit/database/postgres.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { freePort } from "../../kit/process/ports.ts";
import { until } from "../../kit/wait.ts";
import { SECRET, signingKey, startIdentityProvider } from "../admin/identity-provider.ts";

it.skipIf(!hasPostgres())(
  "a person signs in at one gateway, refreshes at another one, and is revoked at both",
  async () => {
    await using postgres = await startPostgres();
    const store = postgresStoreYaml(await postgres.database());
    const urls = await Promise.all([1, 2].map(async () => `http://127.0.0.1:${await freePort()}`));
    await using idp = await startIdentityProvider(
      urls.map((url) => `${url}/oauth/callback`),
      await signingKey("first"),
    );
    const start = (url: string) =>
      startDaemon({
        args: ["--port", new URL(url).port],
        listen: `origins: ["${urls[0]}"]`,
        yaml: `
store: ${store}
frontends:
  - messages
  - use: claude-gateway
    with:
      public_url: ${urls[0]}
      oidc: { issuer: "${idp.issuer}", client_id: tollgate, client_secret: ${SECRET} }
      behind_proxy: true
middleware: [auth]
providers: { demo: { use: demo } }
`,
      });
    await using one = await start(urls[0]!);
    await using other = await start(urls[1]!);
    const tokens = await signIn({ idp, url: urls[0]! }, "ann");
    for (const url of urls) expect((await ask(url, tokens.access_token)).status).toBe(200);
    const next = await refresh(urls[1]!, tokens.refresh_token);
    expect(next.status).toBe(200);
    for (const url of urls) expect((await ask(url, next.body.access_token)).status).toBe(200);
    await one.ask("keys.revoke", { id: "claude-gateway:ann" });
    // The fleet simulation measures the delay, which is at most 1.5 s.
    await until(async () => (await ask(urls[1]!, next.body.access_token)).status === 401);
    expect((await ask(urls[0]!, tokens.access_token)).status).toBe(401);
    for (const url of urls) expect((await refresh(url, next.body.refresh_token)).status).toBe(401);
    expect(await other.ask("ledger.verify")).toMatchObject({ problems: [] });
  },
  180_000,
);
