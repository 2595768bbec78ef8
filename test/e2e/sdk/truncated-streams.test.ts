// A truncated response never looks complete. The upstream disconnects at every byte, in every way
// in which a connection can end. The official SDKs, used in the simplest way, must raise or have
// the whole response.
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Truncation, ScriptProtocol } from "tollgate/testing";
import { ALL, clientsOf, SPEECH, type Clients } from "./clients.ts";
import {
  askedCut,
  finishAt,
  finishIn,
  flaw,
  MODELS,
  ONCE,
  pieces,
  places,
  type CutResult,
} from "./truncation.ts";
import {
  startGatewayWithUpstream,
  modelOn,
  SPOKEN,
  type GatewayWithUpstream,
} from "./gateway-with-upstream.ts";
import { isOtherStore } from "../../kit/database/store-under-test.ts";

let at: GatewayWithUpstream;
let clients: Clients;
beforeAll(async () => {
  at = await startGatewayWithUpstream(
    undefined,
    `middleware: [auth]\nstore: memory\n${ONCE}`,
    MODELS,
  );
  clients = clientsOf(at.gateway);
});
afterAll(() => at[Symbol.asyncDispose]());

const pairs = SPOKEN.flatMap((client) =>
  SPOKEN.map((up): [ScriptProtocol, ScriptProtocol] => [client, up]),
);

describe.each(pairs)("a client of %s, an upstream of %s", (client, up) => {
  const parts = pieces(SPEECH.toProtocol(up, { stream: true, model: "model" }));
  const finish = finishAt(parts, up);
  const all = places(parts, client === up);

  const judge = (results: readonly CutResult[], cuts: readonly number[], how: string) => {
    results.forEach((result, i) => {
      expect(flaw(result, cuts[i]!, finish), `${how} after ${cuts[i]} of ${finish} bytes`).toBe(
        undefined,
      );
    });
  };

  it.each(["reset", "close"] as const)(
    "the client raises wherever the stream is destroyed (%s)",
    async (how) => {
      const cuts = all.filter((at) => at < finish && (how === "reset" || at % 5 === 0));
      judge(
        await askedCut(
          at,
          cuts.map((after) => ({ after, how })),
          clients.streamed[client],
          up,
          true,
        ),
        cuts,
        how,
      );
    },
    120_000,
  );

  it("the client raises if the stream ends cleanly but too soon", async () => {
    const cuts = all.filter((at) => at < finish && at % 3 === 0);
    judge(
      await askedCut(
        at,
        cuts.map((after) => ({ after, how: "end" })),
        clients.streamed[client],
        up,
        true,
      ),
      cuts,
      "end",
    );
  });

  it("the client has the full response if the stream ends cleanly after its finish", async () => {
    const cuts = [...all.filter((at) => at >= finish), finish];
    const results = await askedCut(
      at,
      cuts.map((after) => ({ after, how: "end" })),
      clients.streamed[client],
      up,
      true,
    );
    for (const result of results) expect(result).toEqual({ heard: { all: ALL, ended: true } });
  });

  it("the client raises wherever a non-streaming response is truncated", async () => {
    const [body] = pieces(SPEECH.toProtocol(up, { model: "model" }));
    const cuts = places([body!], false);
    for (const how of ["reset", "close"] as const) {
      const results = await askedCut(
        at,
        cuts.map((after) => ({ after, how })),
        clients.whole[client],
        up,
        false,
      );
      expect(results.filter((result) => !("raised" in result))).toEqual([]);
    }
  });
});

it("control: without a gateway, a stream that ends too soon looks complete", async () => {
  const plain = new OpenAI({ apiKey: "k", baseURL: `${at.up.url}/v1`, maxRetries: 0 });
  const cut: Truncation = { after: { pieces: 3 }, how: "end" };
  at.up.setRoutes({
    "POST /v1/chat/completions": (asked) => ({ ...SPEECH.toResponse(asked), truncation: cut }),
  });
  const stream = await plain.chat.completions.create({
    model: "model",
    messages: [{ role: "user", content: "Hi" }],
    stream: true,
  });
  let chunks = 0;
  for await (const _ of stream) chunks++;
  expect(chunks).toBe(3);
});

// Its rows are read from the file.
describe.skipIf(isOtherStore)("usage that is missing after the finish is estimated", () => {
  let kept: GatewayWithUpstream;
  beforeAll(async () => {
    const store = "store: { use: sqlite, with: { durability: process } }";
    kept = await startGatewayWithUpstream(
      undefined,
      `middleware: [auth]\n${store}\n${ONCE}`,
      MODELS,
    );
  });
  afterAll(() => kept[Symbol.asyncDispose]());

  it.each(SPOKEN)("in the ledger, for an upstream of %s that never reports usage", async (up) => {
    const finish = finishIn(pieces(SPEECH.usage(null).toProtocol(up, { stream: true })), up);
    const cut: Truncation = { after: { pieces: finish + 1 }, how: "end" };
    for (const path of ["/v1/chat/completions", "/v1/messages", "/v1/responses"])
      kept.up.setRoutes({
        [`POST ${path}`]: (asked) => ({ ...SPEECH.usage(null).toResponse(asked), truncation: cut }),
      });
    for (const client of SPOKEN) {
      const before = rows(kept.gateway.stateDir).length;
      expect(await clientsOf(kept.gateway).streamed[client](modelOn(up), "Hello there")).toEqual({
        all: ALL,
        ended: true,
      });
      const [reserve, settle, ...more] = rows(kept.gateway.stateDir).slice(before);
      expect([reserve!.kind, settle!.kind, more.length]).toEqual(["reserve", "settle", 0]);
      expect(["estimated", "unpriced"]).toContain(settle!.state);
      expect(settle!.usage.output).toBeGreaterThan(0);
    }
  });
});

interface Row {
  readonly kind: string;
  readonly state: string;
  readonly usage: { readonly [unit: string]: number };
}

/** The ledger on disk, read by another process. */
function rows(stateDir: string): Row[] {
  const db = new DatabaseSync(join(stateDir, "store/ledger.db"), { readOnly: true });
  const found = db.prepare("SELECT kind, state, usage FROM entry ORDER BY seq").all();
  db.close();
  return found.map((row) => ({
    ...(row as unknown as Row),
    usage: JSON.parse(row["usage"] as string),
  }));
}
