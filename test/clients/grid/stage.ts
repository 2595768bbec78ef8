// One gateway with an upstream that keeps its own bill, and the rules for each operation with any
// library and upstream protocol: the ledger equals the bill, a cancellation ends the upstream call,
// and a rejection costs nothing and calls no provider.
import assert from "node:assert/strict";
import type { Check } from "tollgate/testing";
import { digestKey } from "../../../src/lib/api-key.ts";
import { startDaemon, type Daemon } from "../../kit/process/daemon.ts";
import { everyNth } from "../../kit/law-effort.ts";
import { until } from "../../kit/wait.ts";
import {
  startBillingUpstream,
  billing,
  FRONTENDS,
  priced,
  encodeScript,
  type BillingUpstream,
  type BilledRequest,
} from "../../rig/money/billing-upstream.ts";
import {
  BASES,
  EDITORS,
  EMBEDDERS,
  JUDGES,
  RANKERS,
  vendors,
} from "../../rig/money/vendor-formats.ts";

const KEYS = { alice: "alice-key", narrow: "narrow-key", poor: "poor-key" } as const;
/** A wait that is canceled long before its end. */
const LONG_MS = 20_000;

/** One request of one library, with the name of its cell. */
export interface Asked {
  /** URL of the gateway, without /v1. */
  readonly url: string;
  readonly model: string;
  readonly prompt: string;
  readonly key: string;
  readonly headers: Record<string, string>;
  readonly signal: AbortSignal | undefined;
}
/** A rejection has the status of its response, by the library's name. */
export type Ask = (of: Asked) => Promise<unknown>;

export interface Operation {
  /** One for each upstream protocol of the operation. */
  readonly models: readonly string[];
  /** By library and type of request. */
  readonly ways: { readonly [way: string]: Ask };
}

/** Every operation, with one model for each of its protocols. */
export const WIRES = {
  chat: ["chat/model", "messages/model", "responses/model", "gemini/model"],
  completions: ["bases/base", ...BASES],
  embeddings: ["vectors/vec", ...EMBEDDERS],
  rerank: ["ranks/rank", ...RANKERS],
  moderations: ["judges/judge", ...JUDGES],
  speech: ["voices/voice"],
  transcriptions: ["ears/ear"],
  generations: ["pictures/draw", ...EDITORS],
  edits: ["pictures/draw", ...EDITORS],
} as const satisfies { readonly [operation: string]: readonly string[] };

interface Grid extends AsyncDisposable {
  readonly checks: readonly Check[];
}

interface Row {
  readonly kind: string;
  readonly state: string;
  readonly outcome: string;
  readonly costNano: string;
  readonly labels: { readonly [name: string]: string };
}

interface Wanted {
  readonly gap?: number;
  readonly key?: string;
  readonly headers?: Record<string, string>;
  readonly signal?: AbortSignal;
}

const statusOf = (run: Promise<unknown>): Promise<unknown> =>
  run.then(
    () => "answered",
    (problem: any) => problem.status ?? problem.statusCode ?? problem,
  );

interface Cell {
  readonly name: string;
  readonly model: string;
  readonly ask: Ask;
}

/** The cells of these operations, and the sum of their costs. */
export async function grid(operations: { readonly [name: string]: Operation }): Promise<Grid> {
  const bills = await startBillingUpstream();
  const gateway = await startDaemon({ yaml: yaml(bills.up.url) });
  const laws = new Laws(gateway, bills);
  const cells = Object.entries(operations).flatMap(([operation, { models, ways }]) =>
    Object.entries(ways).flatMap(([way, ask], column) =>
      (models.length > 1 ? everyNth(2, models, column) : models).map((model): Cell => ({
        name: `${operation}, ${way}, ${model}`,
        model,
        ask,
      })),
    ),
  );
  const check = (of: Cell, law: string, run: (of: Cell) => Promise<void>): Check => ({
    name: `${of.name}: ${law}`,
    run: () => run(of),
  });
  return {
    checks: [
      ...cells.flatMap((of) => [
        check(of, "is answered, and costs what its upstream bills", laws.answered),
        check(of, "is given up: its upstream is let go, and there is a row", laws.givenUp),
        check(
          of,
          "is refused by key, budget and Service-ZDR, and no provider is asked",
          laws.refused,
        ),
      ]),
      {
        name: "all that was answered costs what all upstreams bill",
        run: () => laws.summed(cells.length),
      },
    ],
    async [Symbol.asyncDispose]() {
      await gateway[Symbol.asyncDispose]();
      await bills[Symbol.asyncDispose]();
    },
  };
}

class Laws {
  readonly #gateway: Daemon;
  readonly #bills: BillingUpstream;
  #made = 0;

  constructor(gateway: Daemon, bills: BillingUpstream) {
    this.#gateway = gateway;
    this.#bills = bills;
  }

  readonly answered = async ({ model, ask }: Cell): Promise<void> => {
    const { tag, asked } = this.#asking(model);
    await ask(asked);
    const row = await this.#rowOf(tag);
    const billed = this.#billed(tag);
    assert.equal(billed.length, 1, "it was asked once");
    assert.equal(row.state, "exact");
    assert.equal(row.costNano, String(priced(billed[0]!.usage())));
  };

  readonly givenUp = async ({ model, ask }: Cell): Promise<void> => {
    const away = new AbortController();
    const { tag, asked } = this.#asking(model, { gap: LONG_MS, signal: away.signal });
    const run = ask(asked).catch(() => {});
    await until(() => this.#billed(tag).length > 0);
    away.abort();
    await run;
    const { state, outcome } = await this.#rowOf(tag);
    assert.deepEqual([state, outcome], ["estimated", "canceled"]);
    const { asked: there } = this.#billed(tag)[0]!;
    await until(() => there.state !== "open");
    assert.equal(there.state, "aborted", "its upstream was let go");
  };

  readonly refused = async ({ model, ask }: Cell): Promise<void> => {
    const due = [
      [{ key: KEYS.narrow }, 403],
      [{ key: KEYS.poor }, 429],
      [{ headers: { "service-zdr": "required" } }, 403],
      [{ key: "no-such-key" }, 401],
    ] as const;
    const asks = due.map(([wanted]) => this.#asking(model, wanted));
    const said = await Promise.all(asks.map(({ asked }) => statusOf(ask(asked))));
    assert.deepEqual(
      said.map((status, i) => [due[i]![0], status]),
      due.map(([wanted, status]) => [wanted, status]),
    );
    for (const { tag } of asks)
      assert.deepEqual([this.#billed(tag), await this.#settled(tag)], [[], []]);
  };

  async summed(answers: number): Promise<void> {
    const exact = (await this.#settles()).filter(({ state }) => state === "exact");
    const booked = exact.reduce((sum: bigint, row) => sum + BigInt(row.costNano), 0n);
    const tags = new Set(exact.map((row) => row.labels["x-rig"]));
    const due = this.#bills.bill.filter(({ tag }) => tags.has(tag));
    assert.deepEqual([exact.length, due.length], [answers, answers]);
    assert.equal(
      booked,
      due.reduce((sum, one) => sum + priced(one.usage()), 0n),
    );
  }

  #asking(model: string, { gap = 1, key = KEYS.alice, headers, signal }: Wanted = {}) {
    const tag = `grid.${this.#made++}`;
    const asked: Asked = {
      url: this.#gateway.url,
      model,
      prompt: encodeScript({ tag, words: 9, gap }),
      key,
      headers: { "x-rig": tag, ...headers },
      signal,
    };
    return { tag, asked };
  }

  async #settles(): Promise<readonly Row[]> {
    const { items } = (await this.#gateway.ask("ledger.entries", {
      limit: 2_000,
    })) as unknown as { readonly items: readonly Row[] };
    return items.filter((row) => row.kind === "settle");
  }

  async #settled(tag: string): Promise<readonly Row[]> {
    return (await this.#settles()).filter((row) => row.labels["x-rig"] === tag);
  }

  async #rowOf(tag: string): Promise<Row> {
    let rows: readonly Row[] = [];
    await until(async () => (rows = await this.#settled(tag)).length > 0);
    assert.equal(rows.length, 1, "one call, one row");
    return rows[0]!;
  }

  #billed(tag: string): readonly BilledRequest[] {
    return this.#bills.bill.filter((one) => one.tag === tag);
  }
}

const yaml = (url: string) => `
store: { use: memory }
retries: { per_target: 1 }
frontends: ${FRONTENDS}
middleware:
  - use: auth
    with:
      keys:
        - { id: alice, digest: "${digestKey(KEYS.alice)}" }
        - { id: narrow, digest: "${digestKey(KEYS.narrow)}", models: ["demo/*"] }
        - { id: poor, digest: "${digestKey(KEYS.poor)}", limits: [usd=0.00000001/total] }
  - zdr
  - limits
  - { use: usage, with: { label_headers: [x-rig] } }
providers:${billing(url)}${vendors(url)}
`;
