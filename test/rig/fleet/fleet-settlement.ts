// A gateway that dies between a response and its row: the link to its database is silent when the
// provider responds, and the gateway is then killed. A client with a complete response would have
// one without a correct row.
import { setTimeout as sleep } from "node:timers/promises";
import { eventStreamResponse, jsonResponse, startUpstream } from "tollgate/testing";
import { startFleet } from "../../kit/database/fleet.ts";
import { startPostgres } from "../../kit/database/postgres.ts";
import { until } from "../../kit/wait.ts";
import { readEntries } from "./fleet.ts";
import { IN_GATEWAYS } from "./fleet-sql-mutants.ts";
import { mutantOf } from "../mutants/changed-source.ts";
import type { Rig, RigResult } from "../rig.ts";

const yaml = (url: string) => `
frontends: [chat-completions]
middleware: [auth, limits, { use: usage, with: { label_headers: [x-rig] } }]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
`;
const frame = { id: "c", created: 1, model: "model" };
const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
const message = { role: "assistant", content: "Hi." };
const WHOLE = jsonResponse({
  ...frame,
  object: "chat.completion",
  choices: [{ index: 0, message, finish_reason: "stop" }],
  usage,
});
const event = (choices: object[], more: object = {}) =>
  `data: ${JSON.stringify({ ...frame, object: "chat.completion.chunk", choices, ...more })}\n\n`;
const STREAM = eventStreamResponse([
  event([{ index: 0, delta: message, finish_reason: null }]),
  event([{ index: 0, delta: {}, finish_reason: "stop" }]),
  event([], { usage }),
  "data: [DONE]\n\n",
]);
/** By then, a response that is not delayed has reached its client. */
const COMES_MS = 1_000;

export async function fleetEnds(of: { calls: number; plant?: string }): Promise<RigResult> {
  const wrong: string[] = [];
  await using postgres = await startPostgres();
  let sent = 0;
  const { promise: held, resolve: answer } = Promise.withResolvers<void>();
  await using up = await startUpstream({
    "POST /v1/chat/completions": async (asked) => {
      sent++;
      await held;
      return asked.json().stream === true ? STREAM : WHOLE;
    },
    "GET /v1/models": jsonResponse({ object: "list", data: [] }),
  });
  const plant = mutantOf(IN_GATEWAYS, of.plant);
  await using fleet = await startFleet({
    url: await postgres.database(),
    nodes: 2,
    yaml: yaml(up.url),
    with: { lease_ms: "3000" },
    plant: plant && IN_GATEWAYS[plant],
  });
  const [node] = fleet.nodes as [(typeof fleet.nodes)[number]];
  const delivered = new Set<string>();
  const ask = async (i: number): Promise<void> => {
    const stream = i % 2 === 0;
    const response = await fetch(`${node.daemon!.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "x-rig": `${i}`,
        authorization: `Bearer ${fleet.key}`,
      },
      body: JSON.stringify({
        model: "up/model",
        stream,
        messages: [{ role: "user", content: "Hi" }],
      }),
    });
    const text = await response.text();
    if (response.status === 200 && text.includes(stream ? "[DONE]" : "Hi.")) delivered.add(`${i}`);
  };
  const asked = Promise.allSettled(Array.from({ length: of.calls }, (_, i) => ask(i)));
  await until(() => sent === of.calls);
  node.road.hold();
  answer();
  await sleep(COMES_MS);
  const { daemon } = node;
  node.daemon = undefined;
  daemon!.kill("SIGKILL");
  await Promise.all([daemon!.exit, asked]);
  node.road.reset();
  node.road.free();
  await node.start();
  const ends = async () => (await readEntries(fleet)).filter(({ kind }) => kind === "settle");
  await until(async () => (await ends()).length === of.calls);
  const said = new Map((await ends()).map((row) => [row.labels["x-rig"], row.outcome]));
  for (const name of delivered)
    if (said.get(name) !== "ok") wrong.push(`${name}: delivered, and ${said.get(name)}`);
  const recovered = [...said.values()].filter((outcome) => outcome === "recovered").length;
  return { wrong, counts: { calls: of.calls, delivered: delivered.size, recovered }, seed: 0 };
}

export const rig: Rig = {
  options: { calls: 8, plant: "" },
  run: ({ calls, plant = "" }) => fleetEnds({ calls: Number(calls), plant }),
};
