// Three gateways on one PostgreSQL with default settings, and a provider that can be slowed down.
import { jsonResponse, say, startUpstream, type TestUpstream } from "tollgate/testing";
import { startFleet, type Fleet } from "../../../kit/database/fleet.ts";
import { startPostgres, type Postgres } from "../../../kit/database/postgres.ts";

export const NODES = 3;
/** Cost of one response in nano-dollars: one input token and one output token. */
export const EACH = 18_000n;

const yaml = (url: string) => `
frontends: [chat-completions]
middleware: [auth, limits, usage]
providers:
  up: { use: openai-compatible, with: { base_url: "${url}/v1", api_key: k }, models: { model: { price: { input: 3, output: 15 } } } }
`;
const SHORT = say("Hi.").usage({ input: 1, output: 1 });

export interface Stage extends AsyncDisposable {
  readonly postgres: Postgres;
  readonly fleet: Fleet;
  readonly up: TestUpstream;
  /** gateway.yaml without its store. */
  readonly yaml: string;
  /** Duration of the provider's responses from now on. */
  waits(ms: number): void;
  /** Status of a response. 0: none. */
  ask(node: number, key?: string): Promise<number>;
  command<T>(node: number, name: string, input?: object): Promise<T>;
}

export async function staged(): Promise<Stage> {
  await using made = new AsyncDisposableStack();
  const postgres = made.use(
    await startPostgres({ settings: ["shared_preload_libraries=pg_stat_statements"] }),
  );
  let waitMs = 0;
  const up = made.use(
    await startUpstream({
      "POST /v1/chat/completions": (asked) => ({ ...SHORT.toResponse(asked), delayMs: waitMs }),
      "GET /v1/models": jsonResponse({ object: "list", data: [{ id: "model" }] }),
    }),
  );
  const url = await postgres.database();
  const fleet = made.use(await startFleet({ url, nodes: NODES, yaml: yaml(up.url) }));
  const all = made.move();
  return {
    postgres,
    fleet,
    up,
    yaml: yaml(up.url),
    waits: (ms) => void (waitMs = ms),
    async ask(node, key = fleet.key) {
      const { url } = fleet.nodes[node]!.daemon!;
      try {
        const answer = await fetch(`${url}/v1/chat/completions`, {
          method: "POST",
          headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
          body: JSON.stringify({ model: "up/model", messages: [{ role: "user", content: "Hi" }] }),
        });
        await answer.arrayBuffer();
        return answer.status;
      } catch {
        return 0;
      }
    },
    command: (node, name, input = {}) =>
      fleet.nodes[node]!.daemon!.ask(name, input as never) as Promise<never>,
    [Symbol.asyncDispose]: () => all.disposeAsync(),
  };
}
