// A plugin calls its own gateway at the client port, in any form of that port. The console's
// playground uses this.
import { expect, it } from "vitest";
import { startInProcess } from "../../kit/in-process.ts";
import { certificates } from "../../rig/faults/certificates.ts";

const own = certificates("gateway.example");
const files = { "cert.pem": own.good.cert, "key.pem": own.good.key, "clients.pem": own.root };
const TLS = "tls: { cert: ./cert.pem, key: ./key.pem";
const LISTENERS: Readonly<Record<string, string>> = {
  "without TLS": "{ port: 0 }",
  "with a certificate that no system trusts": `{ port: 0, ${TLS} } }`,
  "with TLS 1.3 alone": `{ port: 0, ${TLS}, min_version: "1.3" } }`,
  "on a unix socket": "{ socket: ./clients.sock }",
  "with client certificates on the first listener": `[{ port: 0, ${TLS}, client_certificates: { ca: ./clients.pem, required: true } } }, { port: 0 }]`,
};

async function asked(admin: string, code: string, key: string) {
  const page = {
    "content-type": "application/json",
    "x-tollgate-console": "1",
    origin: admin,
  };
  const session = await fetch(`${admin}/admin/v1/session`, {
    method: "POST",
    headers: page,
    body: JSON.stringify({ code }),
  });
  const cookie = session.headers.get("set-cookie")!.split(";")[0]!;
  const answer = await fetch(`${admin}/console/ask`, {
    method: "POST",
    headers: { ...page, cookie },
    body: JSON.stringify({
      path: "/v1/chat/completions",
      key,
      body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hello" }] }),
    }),
  });
  // The gateway's own error shows that the handshake has reached it.
  const socket = await fetch(`${admin}/console/socket`, {
    method: "POST",
    headers: { ...page, cookie },
    body: JSON.stringify({ path: "/v1/realtime?model=demo/silent", key }),
  });
  const rejection = JSON.parse(await socket.text()) as { type: string; message: string };
  const text = await answer.text();
  const head = JSON.parse(answer.headers.get("x-answer") ?? "{}") as { status?: number };
  return { status: head.status ?? answer.status, text, rejection };
}

it.each(Object.entries(LISTENERS))("the playground renders %s", async (_, listen) => {
  await using gateway = await startInProcess({
    yaml: `admin: { port: 0 }
listen: ${listen}
frontends: [chat-completions, realtime]
middleware: [auth]
observers: [console]
providers: { demo: { use: demo } }
`,
    files,
  });
  const { adminUrl: admin } = (await gateway.ask("status")) as { adminUrl: string };
  const { code } = (await gateway.ask("console")) as { code: string };
  expect(await asked(admin, code, gateway.key)).toMatchObject({
    status: 200,
    text: expect.stringContaining("Hello"),
    rejection: { type: "rejected", message: expect.stringContaining("demo/silent") },
  });
});
