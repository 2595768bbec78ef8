// What a command asks: the gateway that runs, or, where none does, what its file says.
import { askControl } from "../gateway/control/asking.ts";
import { rehearse } from "../gateway/rehearse.ts";
import { faultOf } from "../model/error.ts";
import type { Json, JsonObject } from "../model/values.ts";
import type { CliInput } from "./command.ts";
import { configFile, load, nameOf, quietLog, stateDirOf } from "./loading.ts";
import { counted, reported } from "./report.ts";
import { paintRemark, remark, sayJson } from "./terminal.ts";

/** Undefined: none runs. A state folder means the gateway that runs there, and no file. */
export async function askLive(
  given: CliInput,
  name: string,
  input: JsonObject = {},
): Promise<{ answer: Json } | undefined> {
  try {
    return { answer: await askControl(await stateDirOf(given), name, input) };
  } catch (error) {
    if (faultOf(error)?.code !== "not_running" || given.text("state-dir") !== undefined)
      throw error;
    return undefined;
  }
}

/** What would be mounted. Undefined: the file has errors, and they have been told. */
export async function rehearsed(given: CliInput) {
  const file = configFile(given);
  const loaded = await load(file);
  const { config } = loaded;
  const made = config && (await rehearse({ loaded, config, ...quietLog() }));
  if (made && !("problems" in made)) return made;
  const problems = [...loaded.problems, ...(made?.problems ?? [])];
  if (given.json) sayJson({ ok: false, file: file ?? null, problems });
  remark(reported(problems, paintRemark));
  remark(`\n${nameOf(file)}: ${counted(problems)}`);
  return undefined;
}
