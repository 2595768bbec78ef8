// Sign-ins with several worker processes: the page, the polls, and the requests of one sign-in reach
// different processes, and a revoked key ends its tokens in all of them.
import { expect, it } from "vitest";
import { ask, refresh, signIn } from "../../kit/device-flow.ts";
import { startDaemon } from "../../kit/process/daemon.ts";
import { freePort } from "../../kit/process/ports.ts";
import { until } from "../../kit/wait.ts";
import { SECRET, signingKey, startIdentityProvider } from "../admin/identity-provider.ts";

it("a person signs in, refreshes, and is revoked with two workers", async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  await using idp = await startIdentityProvider(
    [`${url}/oauth/callback`],
    await signingKey("first"),
  );
  await using gateway = await startDaemon({
    args: ["--port", String(port)],
    listen: `origins: ["${url}"]`,
    yaml: `
workers: 2
frontends:
  - messages
  - use: claude-gateway
    with:
      public_url: ${url}
      oidc: { issuer: "${idp.issuer}", client_id: tollgate, client_secret: ${SECRET} }
      behind_proxy: true
middleware: [auth]
providers: { demo: { use: demo } }
`,
  });
  const tokens = await signIn({ idp, url }, "ann");
  for (let i = 0; i < 8; i++) expect((await ask(url, tokens.access_token)).status).toBe(200);
  const next = await refresh(url, tokens.refresh_token);
  expect(next.status).toBe(200);
  await gateway.ask("keys.revoke", { id: "claude-gateway:ann" });
  await until(async () => {
    const all = await Promise.all(
      Array.from({ length: 8 }, () => ask(url, next.body.access_token)),
    );
    return all.every(({ status }) => status === 401);
  });
  expect((await refresh(url, next.body.refresh_token)).status).toBe(401);
}, 180_000);
