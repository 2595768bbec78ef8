// A database that dies under gateways with `away: refuse`: a call is refused at once, nothing of it is sent, and it is served again soon after the database is
// back. How soon both are is measured; what is asserted is that they are so.
import { json, upstream } from "tollgate/testing";
import { startFleet } from "../kit/fleet.ts";
import { startPostgres } from "../kit/postgres.ts";
import type { Rig, Verdict } from "./rig.ts";

const yaml = (url: string) => `
frontends: [chat-completions]
middleware: [auth, { use: limits, with: { hold: hard } }, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
`;
const CHAT = json({
  id: "c",
  object: "chat.completion",
  created: 1,
  model: "model",
  choices: [{ index: 0, message: { role: "assistant", content: "Hi." }, finish_reason: "stop" }],
  usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
});
/** A batch in trouble is tried for so long, and some; then it is known that the database is away. */
const KNOWN_MS = 60_000;

export async function fleetAway(of: { requests: number; nodes: number }): Promise<Verdict> {
  const wrong: string[] = [];
  await using postgres = await startPostgres();
  await using up = await upstream({
    "POST /v1/chat/completions": CHAT,
    "GET /v1/models": json({ object: "list", data: [{ id: "model" }] }),
  });
  const url = await postgres.database();
  await using fleet = await startFleet({ url, nodes: of.nodes, yaml: yaml(up.url) });
  const ask = async (i: number): Promise<{ status: number; text: string; ms: number }> => {
    const began = performance.now();
    const answer = await fetch(`${fleet.nodes[i % of.nodes]!.daemon!.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${fleet.key}` },
      body: JSON.stringify({ model: "up/model", messages: [{ role: "user", content: "Hi" }] }),
    });
    const text = await answer.text();
    return { status: answer.status, text, ms: performance.now() - began };
  };
  const until = async (status: number, what: string): Promise<number> => {
    const began = performance.now();
    for (let i = 0; i < of.nodes; i++)
      while ((await ask(i)).status !== status)
        if (performance.now() - began > KNOWN_MS) {
          wrong.push(what);
          break;
        }
    return performance.now() - began;
  };
  await until(200, "it does not serve");
  await postgres.kill();
  await until(503, "it does not refuse");
  const sent = up.requests.length;
  const times: number[] = [];
  for (let i = 0; i < of.requests; i++) {
    const { status, text, ms } = await ask(i);
    times.push(ms);
    if (status !== 503 || !text.includes("ledger_unavailable")) wrong.push(`${status} ${text}`);
  }
  if (up.requests.length !== sent) wrong.push(`${up.requests.length - sent} calls were sent`);
  await postgres.start();
  const back = await until(200, "it does not serve again");
  times.sort((a, b) => a - b);
  const part = (share: number) => Math.round(times[Math.floor(times.length * share)]! * 10) / 10;
  return {
    wrong,
    counts: {
      refused: times.length,
      "p50-ms": part(0.5),
      "p99-ms": part(0.99),
      "back-ms": Math.round(back),
    },
    seed: 0,
  };
}

export const rig: Rig = {
  options: { requests: 500, nodes: 3 },
  run: ({ requests, nodes }) => fleetAway({ requests: Number(requests), nodes: Number(nodes) }),
};
