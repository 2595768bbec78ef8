// Recorded sessions of released versions of Claude Code and Codex, through the gateway to a provider
// of the same protocol: nothing is rejected, and nothing is lost. `record-sessions.ts` records them.
import { afterAll, beforeAll, expect, it } from "vitest";
import { say } from "tollgate/testing";
import { startInProcessWithUpstream, type InProcessWithUpstream } from "../kit/in-process.ts";
import { NIGHTLY } from "../kit/law-effort.ts";
import { CLIENTS, recordedSessions } from "./record-sessions.ts";
import { USAGE } from "./scripts.ts";

/** Outside the nightly run, the oldest and the newest session of each client. */
const SESSIONS = CLIENTS.flatMap((client) =>
  recordedSessions(client)
    .filter((_, index, { length }) => NIGHTLY || index === 0 || index === length - 1)
    .map((session) => ({ client, ...session })),
);

let at: InProcessWithUpstream;
beforeAll(async () => {
  const reply = (asked: never) => say("Yes.").usage(USAGE).toResponse(asked);
  at = await startInProcessWithUpstream(
    { "POST /v1/messages": reply, "POST /v1/responses": reply } as never,
    (url) => `
frontends: [messages, responses]
middleware: [auth]
providers:
  anthropic: { use: anthropic, with: { base_url: "${url}/v1", api_key: sk-up } }
  openai: { use: openai, with: { base_url: "${url}/v1", api_key: sk-up } }
`,
  );
}, 60_000);
afterAll(() => at?.[Symbol.asyncDispose]());

const nameOf = ({ client, versions }: (typeof SESSIONS)[number]) =>
  `${client} ${versions[0]!}${versions.length > 1 ? ` to ${versions.at(-1)!}` : ""}`;

it.each(SESSIONS.map((session) => [nameOf(session), session] as const))(
  "%s: each request is accepted, and arrives as it was sent",
  async (_name, { requests }) => {
    expect(requests.length).toBeGreaterThan(1);
    for (const { path, headers, body } of requests) {
      const { model } = body as { model: string };
      const provider = path.startsWith("/v1/messages") ? "anthropic" : "openai";
      at.up.reset();
      const res = await fetch(`${at.gateway.url}${path}`, {
        method: "POST",
        headers: { ...headers, authorization: `Bearer ${at.gateway.key}` },
        body: JSON.stringify({ ...(body as object), model: `${provider}/${model}` }),
      });
      const text = await res.text();
      expect(res.status, text).toBe(200);
      expect(res.headers.get("x-tollgate-warnings")).toBeNull();
      const asked = at.up.requests.find(({ method }) => method === "POST");
      expect(asked!.json()).toEqual(body);
      for (const [name, value] of Object.entries(headers))
        if (/^anthropic-(?:beta|version)$/.test(name)) expect(asked!.headers[name]).toBe(value);
    }
  },
);
