import type { RequestExplanation } from "../../../runtime/gateway-api.ts";
import { formatDuration } from "../../../lib/time/units.ts";
import { askRunningGateway, dryRunConfig } from "../../support/gateway-or-file.ts";
import {
  type CliCommand,
  type CliInput,
  EXIT_CODES,
  GATEWAY_OPTIONS,
} from "../../support/command.ts";
import { formatQuarantine, formatCooldown } from "../../format/cooldown-output.ts";
import {
  alignColumns,
  paint,
  paintRemark,
  printRemark,
  print,
  printJson,
} from "../../format/terminal.ts";

export const command: CliCommand = {
  usage: "explain <model> [options]",
  description:
    "Explains how a request for a model would be routed: the candidates in order, " +
    "the excluded candidates with reasons, passthrough or translation, and the " +
    "plugins that see the request. It sends no request. Uses the running gateway, or " +
    "gateway.yaml if no gateway is running.",
  options: {
    ...GATEWAY_OPTIONS,
    frontend: {
      short: "f",
      placeholder: "name",
      description: "Simulate a request to this frontend: messages, responses, …",
    },
    key: {
      placeholder: "id",
      description: "Simulate a request with this key, by ID or name (needs a running gateway)",
    },
    zdr: { description: "Simulate a request with the header Service-ZDR: required" },
    strict: { description: "Simulate a request with the header Service-ZDR: strict" },
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate explain demo/echo",
    "tollgate explain fast --frontend messages --zdr --json",
  ],
  async run(given) {
    const explained = (await explainFromGateway(given)) ?? (await explainFromFile(given));
    if (!explained) return EXIT_CODES.failed;
    if (given.json) printJson(explained);
    else print(formatExplanation(explained));
    return explained.candidates.some(({ excluded }) => !excluded)
      ? EXIT_CODES.ok
      : EXIT_CODES.failed;
  },
};

const explainInput = (given: CliInput) => ({
  model: given.positionals[0]!,
  frontend: given.getText("frontend"),
  key: given.getText("key"),
  privacy: given.has("strict") ? "strict" : given.has("zdr") ? "required" : undefined,
});

async function explainFromGateway(given: CliInput): Promise<RequestExplanation | undefined> {
  const input = explainInput(given);
  const live = await askRunningGateway(given, "explain", input);
  if (live) printRemark(paintRemark("gray", "From the running gateway:"));
  return live?.answer as unknown as RequestExplanation | undefined;
}

async function explainFromFile(given: CliInput): Promise<RequestExplanation | undefined> {
  await using rehearsal = await dryRunConfig(given);
  const input = explainInput(given);
  return (await rehearsal?.commands.explain(input)) as RequestExplanation | undefined;
}

function formatExplanation(of: RequestExplanation): string {
  const served = of.candidates.filter(({ excluded }) => !excluded);
  const out = of.candidates.filter(({ excluded }) => excluded);
  const heading = (text: string) => `\n${paint("bold", text)}`;
  const { connectMs, firstByteMs, idleMs, totalMs } = of.timeouts;
  const lines = [`${paint("bold", of.model)} on ${of.frontend}`];
  if (served.length > 0)
    lines.push(
      heading(`candidates, in order (${of.strategy})`),
      alignColumns(
        served.map((c, i) => [
          `${i + 1}`,
          c.id,
          `credential ${c.credential}`,
          c.protocol ?? "native",
          c.mode === "passthrough"
            ? paint("green", c.mode)
            : `${paint("yellow", c.mode)}${c.translationReason === undefined ? "" : ` (${c.translationReason})`}`,
          ...(c.orderReason === undefined ? [] : [c.orderReason]),
          ...(c.cooldown ? [paint("yellow", formatCooldown(c.cooldown))] : []),
        ]),
        "  ",
      ),
    );
  else lines.push(heading("no candidates"));
  if (out.length > 0)
    lines.push(
      heading("excluded"),
      alignColumns(
        out.map(({ id, credential, excluded }) => [
          id,
          `credential ${credential}`,
          `${excluded!.by}: ${excluded!.message} (${excluded!.code})`,
        ]),
        "  ",
      ),
    );
  const hooks = Object.entries(of.hooks).filter(([, plugins]) => plugins.length > 0);
  if (hooks.length > 0)
    lines.push(
      heading("plugins, in order"),
      alignColumns(
        hooks.map(([hook, plugins]) => [hook, plugins.join(" → ")]),
        "  ",
      ),
    );
  if ((of.quarantinedHooks ?? []).length > 0)
    lines.push(
      heading("excluded candidates"),
      ...of.quarantinedHooks!.map((one) => `  ${formatQuarantine(one)}`),
    );
  lines.push(
    heading("timeouts"),
    `  connect ${formatDuration(connectMs)}, first byte ${formatDuration(firstByteMs)}, idle ${formatDuration(idleMs)}, total ${formatDuration(totalMs)}`,
  );
  if (of.hedgeDelays && of.hedgeDelays.length > 0)
    lines.push(
      heading("hedging"),
      ...of.hedgeDelays.map(
        ({ class: name, afterMs }) =>
          `  class ${name}: if no content arrives within ${formatDuration(afterMs)}, the next candidate is also called`,
      ),
      "  cost: both calls are billed; hedges use the client's retry budget, about 6 " +
        "per 100 requests",
    );
  if ((of.notes ?? []).length > 0)
    lines.push(heading("notes"), ...of.notes!.map((note) => `  ${note}`));
  return lines.join("\n");
}
