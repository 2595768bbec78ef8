import type { Tested } from "../gateway/control/test-call.ts";
import type { ProviderHealth, ProvidersHealth } from "../gateway/control/provider-commands.ts";
import { COMMANDS } from "../gateway/control/table.ts";
import { askControl } from "../gateway/control/asking.ts";
import type { JsonObject } from "../model/values.ts";
import { plural } from "../lib/text.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT,
  group,
  type Options,
  type Part,
  PLACE,
} from "./command.ts";
import { stateDirOf } from "./loading.ts";
import { sayRest } from "./resting.ts";
import { columns, moment, paint, say, sayJson } from "./terminal.ts";

const ONE: Options = {
  credential: { value: "name", about: "only with this credential" },
  ...PLACE,
};

const parts: Readonly<Record<string, Part>> = {
  list: {
    usage: "providers list [options]",
    summary: COMMANDS["providers.list"].summary,
    about:
      "Says how each provider has fared in the last hour: calls, failures, time to first content, what rests and until when, what failed " +
      "last. Needs a running gateway.",
    options: PLACE,
    examples: ["tollgate providers", "tollgate providers list --json"],
    run: list,
  },
  test: {
    usage: "providers test <provider> [options]",
    summary: COMMANDS["providers.test"].summary,
    about:
      "Makes one small call with each credential of a provider, and says what became of it. It costs what it costs: the ledger has it, " +
      'under the key "operator". Exits with 1 when one of them fails.',
    options: {
      model: { value: "model", about: "this one; the cheapest chat model by default" },
      ...ONE,
    },
    words: { least: 1, most: 1 },
    examples: ["tollgate providers test demo", "tollgate providers test openai --model gpt-5-mini"],
    run: test,
  },
  wake: {
    usage: "providers wake <provider> [options]",
    summary: COMMANDS["providers.wake"].summary,
    about:
      "Ends what keeps a provider, or one credential of it, from being asked: a rest that it asked for, a credential that it refused, " +
      "failures in a row. If it fails again, it rests again.",
    options: ONE,
    words: { least: 1, most: 1 },
    examples: ["tollgate providers wake demo"],
    run: wake,
  },
};

export const command: CliCommand = group(
  "providers",
  "Says how providers are, tries them and wakes them. Without a command it lists them.",
  parts,
  "list",
);

const ask = async (given: CliInput, name: string, input: JsonObject = {}) =>
  askControl(await stateDirOf(given), name, input);

async function list(given: CliInput): Promise<number> {
  const answer = (await ask(given, "providers.list")) as unknown as ProvidersHealth;
  if (given.json) sayJson(answer);
  else say(inWords(answer));
  return EXIT.fine;
}

function inWords({ providers, leftOut }: ProvidersHealth): string {
  const titles = ["provider", "models", "calls 1h", "failed", "first content p50 / p95", "list"];
  const rows = [
    titles.map((title) => paint("gray", title)),
    ...providers.map((one) => [
      one.name,
      String(one.models),
      String(one.hour?.requests ?? 0),
      one.hour?.failed ? paint("red", String(one.hour.failed)) : "0",
      one.hour?.firstContentMs
        ? `${one.hour.firstContentMs.p50} / ${one.hour.firstContentMs.p95} ms`
        : "",
      listOf(one),
    ]),
    ...leftOut.map(({ provider, why }) => [paint("gray", provider), "", "", "", "", why]),
  ];
  const lines = providers.flatMap((one) => [
    ...one.credentials.flatMap(({ name, resting }) =>
      resting.map((rest) =>
        paint(
          "yellow",
          `${one.name} ${name} ${rest.model ?? ""}`.trimEnd().concat(`: ${sayRest(rest)}`),
        ),
      ),
    ),
    ...one.faults
      .slice(0, 1)
      .map(
        ({ kind, code, at, request }) =>
          `${one.name} failed last ${moment(at)}: ${code ?? kind} (tollgate request ${request})`,
      ),
  ]);
  return [columns(rows), ...lines].join("\n");
}

function listOf({ credentials }: ProviderHealth): string {
  const lists = credentials.flatMap(({ list }) => (list ? [list] : []));
  const failed = lists.find(({ lastError }) => lastError);
  if (failed) return paint("red", failed.lastError!.message);
  const oldest = Math.min(...lists.flatMap(({ lastOk }) => lastOk ?? []));
  return Number.isFinite(oldest) ? `said ${moment(oldest)}` : "";
}

async function test(given: CliInput): Promise<number> {
  const { tests } = (await ask(given, "providers.test", {
    provider: given.words[0]!,
    credential: given.text("credential"),
    model: given.text("model"),
  })) as unknown as { tests: readonly Tested[] };
  if (given.json) sayJson({ tests });
  else
    say(
      columns(
        tests.map((one) => [
          one.credential,
          one.ok ? paint("green", "answers") : paint("red", "fails"),
          one.model ?? "",
          one.model === null ? "" : `${one.ms} ms`,
          one.model === null || one.usd === null ? "" : `$${one.usd}`,
          one.why ?? "",
        ]),
      ),
    );
  return tests.every(({ ok }) => ok) ? EXIT.fine : EXIT.failed;
}

async function wake(given: CliInput): Promise<number> {
  const answer = (await ask(given, "providers.wake", {
    provider: given.words[0]!,
    credential: given.text("credential"),
  })) as unknown as { woken: readonly string[] };
  if (given.json) sayJson(answer);
  else
    say(`${plural(answer.woken.length, "credential")} of ${given.words[0]} will be asked again.`);
  return EXIT.fine;
}
