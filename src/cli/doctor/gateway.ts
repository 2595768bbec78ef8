// The gateway itself: what its file says, whether it runs, and whether providers take its credentials.
import { askControl } from "../../gateway/control/asking.ts";
import type { Tested } from "../../gateway/control/test-call.ts";
import type { Rehearsal } from "../../gateway/rehearse.ts";
import type { Status } from "../../gateway/types.ts";
import type { GatewayConfig, Located } from "../../config/types.ts";
import { plural } from "../../lib/text.ts";
import { faultOf, sayable } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { near } from "../report.ts";
import { error, fine, note, warning, type DoctorFinding } from "./finding.ts";
import { ending, POLICY_DAYS } from "./thresholds.ts";

const ASK_MS = 20_000;
const NAMED = 5;

/** What `tollgate check` finds. */
export function config(
  problems: readonly Located[],
  file: string | undefined,
): readonly DoctorFinding[] {
  const name = file === undefined ? "the default config" : near(file);
  if (problems.every(({ severity }) => severity === "note"))
    return [fine("config", `${name} is fine`)];
  return problems
    .filter(({ severity }) => severity !== "note")
    .map(({ severity, file, line, path, message, hint }) =>
      (severity === "error" ? error : warning)(
        "config/problem",
        `${near(file)}${line > 0 ? `:${line}` : ""}: ${path === "" ? "" : `${path}: `}${message}`,
        hint ?? "tollgate check shows the place",
      ),
    );
}

/** Undefined: none runs. */
export async function running(
  stateDir: string,
  version: string,
): Promise<{ status: Status | undefined; found: readonly DoctorFinding[] }> {
  try {
    const status = (await askControl(stateDir, "status")) as unknown as Status;
    return { status, found: stateOf(status, version) };
  } catch (cause) {
    if (faultOf(cause)?.code === "not_running")
      return {
        status: undefined,
        found: [note("gateway", "no gateway runs here", "tollgate serve")],
      };
    return {
      status: undefined,
      found: [
        error(
          "gateway",
          `the gateway does not answer: ${sayable(cause)}`,
          "look at its log; then start it again",
        ),
      ],
    };
  }
}

function stateOf(status: Status, version: string): readonly DoctorFinding[] {
  const found: DoctorFinding[] = [fine("gateway", `a gateway is ${status.state} at ${status.url}`)];
  if (status.version !== version)
    found.push(
      warning(
        "gateway/version",
        `it is ${status.version}, and this is ${version}`,
        "start the gateway again",
      ),
    );
  if (status.lastReload?.ok === false)
    found.push(
      error(
        "gateway/reload",
        "its last reload was refused, and the config before goes on",
        "tollgate status shows why",
      ),
    );
  for (const { what, why } of status.resting)
    found.push(
      warning(
        "gateway/resting",
        `${what} is cooling down: ${String(why)}`,
        "tollgate status says until when",
      ),
    );
  for (const { provider, credential, lastError } of status.lists)
    if (lastError)
      found.push(
        warning(
          `providers.${provider}/list`,
          `${provider} (${credential}) does not say what it has: ${lastError.message}`,
          `tollgate providers test ${provider}`,
        ),
      );
  return found;
}

/** One small call with each, by the gateway that runs; where none does, its provider is asked what it has. */
export async function credentials(
  config: GatewayConfig,
  made: Rehearsal,
  live: boolean,
): Promise<readonly DoctorFinding[]> {
  const asked = [...config.providers.values()].map(async (provider) =>
    live
      ? tested(config.stateDir, provider.name)
      : Promise.all(provider.credentials.map(({ name }) => listed(made, provider.name, name))),
  );
  return (await Promise.all(asked)).flat();
}

const AGAIN = "look at the key: a new one, its rights, its account's balance";

async function tested(stateDir: string, provider: string): Promise<readonly DoctorFinding[]> {
  const id = `providers.${provider}`;
  const input: JsonObject = { provider };
  const answer = await askControl(stateDir, "providers.test", input).catch(
    (cause: unknown) => cause,
  );
  if (answer instanceof Error)
    return [error(`${id}/call`, `${provider}: ${sayable(answer)}`, AGAIN)];
  return (answer as { tests: readonly Tested[] }).tests.map((one) => {
    if (one.model === null)
      return note(`${id}/call`, `${provider} (${one.credential}) was not asked: ${one.why}`);
    if (!one.ok)
      return error(
        `${id}/call`,
        `${provider} (${one.credential}) fails: ${one.why ?? one.status}`,
        AGAIN,
      );
    return fine(
      `${id}/call`,
      `${provider} (${one.credential}) answered with ${one.model} in ${one.ms} ms${one.usd === null ? "" : ` for $${one.usd}`}`,
    );
  });
}

async function listed(
  made: Rehearsal,
  provider: string,
  credential: string,
): Promise<DoctorFinding> {
  const id = `providers.${provider}/call`;
  const one = made.lists.find(
    (each) => each.provider === provider && each.credential === credential,
  );
  if (!one)
    return note(
      id,
      `${provider} (${credential}) has no list to ask for`,
      `with a gateway that runs: tollgate providers test ${provider}`,
    );
  try {
    const models = await one.models(AbortSignal.timeout(ASK_MS));
    return fine(
      id,
      `${provider} (${credential}) says that it has ${plural(Array.isArray(models) ? models.length : 0, "model")}`,
    );
  } catch (cause) {
    const reached = faultOf(cause)?.code !== "connect_failed";
    return error(
      id,
      `${provider} (${credential}) does not say what it has: ${sayable(cause)}`,
      reached ? AGAIN : "it has to be reached first",
    );
  }
}

/** Names that clients ask for, and that nothing could be charged for. */
export async function prices(
  config: GatewayConfig,
  made: Rehearsal,
): Promise<readonly DoctorFinding[]> {
  const { models } = (await made.commands["models.list"]({})) as unknown as {
    models: readonly { id: string; price?: unknown }[];
  };
  const known = new Map(models.map((model) => [model.id, model.price !== undefined]));
  const wanted = [...config.models.values()].flatMap(({ candidates }) => candidates);
  const without = [...new Set(wanted)].filter((id) => known.get(id) === false);
  const rest = models.filter(({ price }) => price === undefined).length;
  const found: DoctorFinding[] = [];
  if (without.length > 0)
    found.push(
      warning(
        "prices/names",
        `${plural(without.length, "model")} under models: without a price: ${without.slice(0, NAMED).join(", ")}`,
        "budgets do not count what has no price: say it under providers.<name>.models, and tollgate models explain shows what is known",
      ),
    );
  else if (wanted.some((id) => known.has(id)))
    found.push(fine("prices/names", "every model that a name under models: leads to has a price"));
  if (rest > 0)
    found.push(
      note(
        "prices/listed",
        `${rest} of ${plural(models.length, "model")} that providers list ${rest === 1 ? "has" : "have"} no price: a request that names one by its provider is unpriced`,
      ),
    );
  return found;
}

/** What is known of data policies, and what the operator has declared, has an end. */
export function policies(config: GatewayConfig, made: Rehearsal): readonly DoctorFinding[] {
  const found: DoctorFinding[] = [];
  const look = (what: string, date: string | undefined, todo: string, end = date) => {
    if (date === undefined) return;
    const when = ending(end, POLICY_DAYS);
    if (when === "later") return;
    const said =
      when === "unreadable"
        ? `has an end that cannot be read, and counts as ended: "${date}"`
        : `${when === "over" ? "ended" : "ends"} on ${date}`;
    found.push(warning("policy/expires", `${what} ${said}`, todo));
  };
  for (const { name, data } of made.providers.values())
    look(
      `what is known of ${name}'s data policy`,
      data?.expires,
      "upgrade: each release reads the policies again",
    );
  for (const { name, credentials } of config.providers.values())
    for (const { name: credential, zdr } of credentials)
      look(
        `your word on ${name} (${credential})`,
        zdr?.until,
        "look at the contract, and write its new end under zdr.until",
        // A last day, and a whole one.
        zdr && `${zdr.until}T24:00Z`,
      );
  return found.length > 0
    ? found
    : [fine("policy/expires", `no data policy ends within ${POLICY_DAYS} days`)];
}
