// Runs a query in the running gateway, or on gateway.yaml if no gateway runs.
import { callControl } from "../../admin/socket/control-client.ts";
import { startDryRun } from "../../server/dry-run.ts";
import { getFault } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { CliInput } from "./command.ts";
import {
  configFile,
  loadGatewayConfig,
  configName,
  quietLog,
  findStateDir,
} from "./load-config.ts";
import { summarizeProblems, formatProblems } from "../format/problem-report.ts";
import { paintRemark, printRemark, printJson } from "../format/terminal.ts";

/**
 * Calls the running gateway. Returns undefined if no gateway is running. With --state-dir, throws
 * if no gateway is running in that directory, because gateway.yaml is then not used.
 */
export async function askRunningGateway(
  given: CliInput,
  name: string,
  input: JsonObject = {},
): Promise<{ answer: Json } | undefined> {
  try {
    return { answer: await callControl(await findStateDir(given), name, input) };
  } catch (error) {
    if (getFault(error)?.code !== "not_running" || given.getText("state-dir") !== undefined)
      throw error;
    return undefined;
  }
}

/**
 * Builds the config without starting it. Returns undefined after printing the problems if
 * gateway.yaml has errors.
 */
export async function dryRunConfig(given: CliInput) {
  const file = configFile(given);
  const loaded = await loadGatewayConfig(file);
  const { config } = loaded;
  const made = config && (await startDryRun({ loaded, config, ...quietLog() }));
  if (made && !("problems" in made)) return made;
  const problems = [...loaded.problems, ...(made?.problems ?? [])];
  if (given.json) printJson({ ok: false, file: file ?? null, problems });
  printRemark(formatProblems(problems, paintRemark));
  printRemark(`\n${configName(file)}: ${summarizeProblems(problems)}`);
  return undefined;
}
