// Client text never controls the gateway, however a third-party protocol reads it: only a frontend
// names a candidate, and the client's own key reaches no provider.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { Protocol } from "tollgate/plugin";
import { startBackend, startTestServices } from "../../kit/test-services.ts";
import { createToyProtocol } from "../toy-protocol.ts";
import { trialCount } from "../../kit/law-effort.ts";

const END = `${JSON.stringify({ id: "u", say: "Hi", usage: { input: 1, output: 1 }, end: "stop" })}\n`;
const speaking = () =>
  startBackend(
    (_req, res) => void res.writeHead(200, { "content-type": "text/event-stream" }).end(END),
  );

/** A protocol whose schema requires nothing, and which forwards all headers of some kind. */
function loose(headers: readonly string[]): Protocol<"chat"> {
  const protocol = createToyProtocol();
  return {
    ...protocol,
    headers: { request: headers },
    server: { ...protocol.server!, schema: { type: "object" } },
  };
}

async function asked(
  headers: readonly string[],
  model: unknown,
  sent: Record<string, string> = {},
  models?: readonly string[],
) {
  await using up = await speaking();
  await using s = await startTestServices({
    frontend: loose(headers),
    providers: {
      p: {
        endpoints: [{ protocol: loose(headers), base: up.base, auth: "none" as const }],
        stateMode: "relay",
      },
    },
    ...(models && { identity: { models } }),
  });
  const res = await s.ask({ model, text: "Hi", stream: true }, { headers: sent });
  return { status: res.status, text: await res.text(), asked: up.asked };
}

describe("a body's model", () => {
  it("must be a name; an object selects no candidate", () =>
    fc.assert(
      fc.asyncProperty(
        fc.oneof(
          fc.constant({ provider: "p", model: "m", credential: "default" }),
          fc.record(
            { provider: fc.constant("p"), model: fc.constant("m"), credential: fc.string() },
            { requiredKeys: [] },
          ),
          fc.array(fc.constant("p/m"), { maxLength: 2 }),
          fc.constantFrom(null, 1, true),
        ),
        fc.constantFrom(undefined, ["p/m"], ["other/*"]),
        async (model, models) => {
          const got = await asked([], model, {}, models);
          expect(got.status).toBe(400);
          expect(got.text).toContain("Missing model: it must be a string");
          expect(got.asked).toEqual([]);
        },
      ),
      { numRuns: trialCount(20) },
    ));
});

describe("a client's key", () => {
  const KEYS = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-goog-api-key",
  ];
  it.each([["x-*"], ["auth*", "proxy-auth*", "cook*", "api*", "x*"], KEYS])(
    "is sent to no provider, whatever headers a protocol forwards: %s",
    async (...list) => {
      const mine = Object.fromEntries(KEYS.map((name) => [name, `Bearer client-${name}`]));
      const got = await asked(list, "p/m", { ...mine, "x-plain": "yes" });
      expect(got.status).toBe(200);
      const [{ headers }] = got.asked as [(typeof got.asked)[number]];
      expect(JSON.stringify(headers)).not.toContain("client-");
      if (list.some((pattern) => pattern.startsWith("x") && pattern.endsWith("*")))
        expect(headers["x-plain"]).toBe("yes");
    },
  );
});
