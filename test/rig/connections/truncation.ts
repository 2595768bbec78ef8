// A truncated response never looks complete: the upstream disconnects after random numbers of
// bytes, in every way, and the official SDKs raise wherever the finish has not arrived. `--every 1`
// tests every byte, like test/e2e/sdk/truncated-streams.test.ts.
import OpenAI from "openai";
import type { Truncation, ScriptProtocol } from "tollgate/testing";
import { clientsOf, SPEECH } from "../../e2e/sdk/clients.ts";
import { askedCut, finishAt, flaw, MODELS, ONCE, pieces } from "../../e2e/sdk/truncation.ts";
import { startGatewayWithUpstream, SPOKEN } from "../../e2e/sdk/gateway-with-upstream.ts";
import { createChance, type Chance, type Rig, type RigResult } from "../rig.ts";

const WAYS = ["reset", "close", "end"] as const;

export interface CutsOptions {
  readonly seed: number;
  /** One in this many bytes. */
  readonly every: number;
  /** Without a gateway in between: the checker must find this. */
  readonly mutant?: "bare";
}

export async function cuts(
  of: CutsOptions,
  say: (line: string) => void = () => {},
): Promise<RigResult> {
  const chanced = createChance(of.seed);
  const wrong: string[] = [];
  let [cut, raised] = [0, 0];
  await using at = await startGatewayWithUpstream(
    undefined,
    `middleware: [auth]\nstore: memory\n${ONCE}`,
    MODELS,
  );
  const clients = clientsOf(at.gateway);
  const bare = new OpenAI({ apiKey: "k", baseURL: `${at.up.url}/v1`, maxRetries: 0 });
  const pairs = of.mutant
    ? [["chat-completions", "chat-completions"] as const]
    : SPOKEN.flatMap((client) => SPOKEN.map((up) => [client, up] as const));
  for (const [client, up] of pairs as readonly (readonly [ScriptProtocol, ScriptProtocol])[]) {
    const parts = pieces(SPEECH.toProtocol(up, { stream: true, model: "model" }));
    const finish = finishAt(parts, up);
    for (const how of WAYS) {
      const places = new Set<number>();
      for (let after = chanced.below(of.every); after < finish; after += step(chanced, of.every))
        places.add(after);
      // Between two events nothing is malformed, and a truncation looks most like a normal end.
      if (how === "end") for (const edge of edges(parts)) if (edge < finish) places.add(edge);
      const drawn = [...places].map((after): Truncation => ({ after, how }));
      const ask = of.mutant ? plainly(bare) : clients.streamed[client];
      const results = await askedCut(at, drawn, ask, up, true);
      results.forEach((result, i) => {
        const { after } = drawn[i]!;
        cut++;
        if ("raised" in result) raised++;
        const found = flaw(result, Number(after), finish);
        if (found) wrong.push(`${client} from ${up}, ${how} after ${after} of ${finish}: ${found}`);
      });
    }
    say(`${client} from ${up}: ${cut} so far`);
  }
  return { wrong, counts: { cuts: cut, raised }, seed: of.seed };
}

const step = (chanced: Chance, every: number): number => 1 + chanced.below(2 * every - 1);

function edges(parts: readonly Buffer[]): number[] {
  let at = 0;
  return parts.map(({ length }) => (at += length));
}

/** An SDK that calls the upstream directly. */
const plainly = (client: OpenAI) => async (_model: string, text: string) => {
  const messages = [{ role: "user" as const, content: text }];
  const stream = await client.chat.completions.create({ model: "model", messages, stream: true });
  let all = "";
  for await (const chunk of stream) all += chunk.choices[0]?.delta.content ?? "";
  return { all, ended: true };
};

export const rig: Rig = {
  options: { every: 5, seed: Date.now() % 1e6 },
  run: ({ every, seed }, say) => cuts({ every: Number(every), seed: Number(seed) }, say),
};
