// Checks the gateway itself: its config, whether it is running, and whether providers accept its
// credentials.
import { callControl } from "../../admin/socket/control-client.ts";
import type { TestCallResult } from "../../admin/commands/test-calls.ts";
import type { DryRun } from "../../server/dry-run.ts";
import type { GatewayStatus } from "../../runtime/gateway-api.ts";
import type { GatewayConfig, LocatedProblem } from "../../config/gateway-config.ts";
import { plural } from "../../lib/text.ts";
import { getFault, publicErrorText } from "../../model/error.ts";
import type { JsonObject } from "../../model/values.ts";
import { shortPath } from "../format/problem-report.ts";
import {
  errorFinding,
  okFinding,
  noteFinding,
  warningFinding,
  type DoctorFinding,
  expiryState,
  POLICY_DAYS,
} from "./finding.ts";

const TEST_TIMEOUT_MS = 20_000;
const MAX_NAMED = 5;

/** Returns the problems that `tollgate check` reports. */
export function checkConfig(
  problems: readonly LocatedProblem[],
  file: string | undefined,
): readonly DoctorFinding[] {
  const name = file === undefined ? "the default config" : shortPath(file);
  if (problems.every(({ severity }) => severity === "note"))
    return [okFinding("config", `${name} is valid`)];
  return problems
    .filter(({ severity }) => severity !== "note")
    .map(({ severity, file, line, path, message, hint }) =>
      (severity === "error" ? errorFinding : warningFinding)(
        "config/problem",
        `${shortPath(file)}${line > 0 ? `:${line}` : ""}: ${path === "" ? "" : `${path}: `}${message}`,
        hint ?? "run tollgate check to see the position",
      ),
    );
}

/**
 * Returns the running gateway's status with findings. The status is undefined if no gateway runs or
 * it does not answer.
 */
export async function checkRunning(
  stateDir: string,
  version: string,
): Promise<{ status: GatewayStatus | undefined; found: readonly DoctorFinding[] }> {
  try {
    const status = (await callControl(stateDir, "status")) as unknown as GatewayStatus;
    return { status, found: checkState(status, version) };
  } catch (cause) {
    if (getFault(cause)?.code === "not_running")
      return {
        status: undefined,
        found: [noteFinding("gateway", "no gateway is running", "tollgate serve")],
      };
    return {
      status: undefined,
      found: [
        errorFinding(
          "gateway",
          `the gateway does not respond: ${publicErrorText(cause)}`,
          "check its log, then restart it",
        ),
      ],
    };
  }
}

function checkState(status: GatewayStatus, version: string): readonly DoctorFinding[] {
  const found: DoctorFinding[] = [
    okFinding("gateway", `a gateway is ${status.state} at ${status.url}`),
  ];
  if (status.version !== version)
    found.push(
      warningFinding(
        "gateway/version",
        `the running gateway is version ${status.version}, and this command is version ${version}`,
        "restart the gateway",
      ),
    );
  if (status.lastReload?.ok === false)
    found.push(
      errorFinding(
        "gateway/reload",
        "the last reload was rejected, and the previous config stays in use",
        "run tollgate status for the reason",
      ),
    );
  for (const { target, reason } of status.cooldowns)
    found.push(
      warningFinding(
        "gateway/resting",
        `${target} is in cooldown: ${String(reason)}`,
        "run tollgate status for the end of the cooldown",
      ),
    );
  for (const { provider, credential, lastError } of status.modelLists)
    if (lastError)
      found.push(
        warningFinding(
          `providers.${provider}/list`,
          `${provider} (${credential}): the model list is unavailable: ${lastError.message}`,
          `run tollgate providers test ${provider}`,
        ),
      );
  return found;
}

/**
 * Tests each credential. A running gateway sends one small request with the credential. If no
 * gateway is running, the provider's model list is requested.
 */
export async function checkCredentials(
  config: GatewayConfig,
  made: DryRun,
  live: boolean,
): Promise<readonly DoctorFinding[]> {
  const checks = [...config.providers.values()].map(async (provider) =>
    live
      ? testProvider(config.stateDir, provider.name)
      : Promise.all(
          provider.credentials.map(({ name }) => checkModelList(made, provider.name, name)),
        ),
  );
  return (await Promise.all(checks)).flat();
}

/** Codes of errors without a response of the provider. */
const CONNECTION_CODES: ReadonlySet<string> = new Set([
  "connect_failed",
  "tls_failed",
  "upstream_disconnected",
]);
const CREDENTIAL_HINT = "check the key, its permissions, and its account's balance";

async function testProvider(stateDir: string, provider: string): Promise<readonly DoctorFinding[]> {
  const id = `providers.${provider}`;
  const input: JsonObject = { provider };
  const answer = await callControl(stateDir, "providers.test", input).catch(
    (cause: unknown) => cause,
  );
  if (answer instanceof Error)
    return [errorFinding(`${id}/call`, `${provider}: ${publicErrorText(answer)}`, CREDENTIAL_HINT)];
  return (answer as { tests: readonly TestCallResult[] }).tests.map((one) => {
    if (one.model === null)
      return noteFinding(
        `${id}/call`,
        `${provider} (${one.credential}) was not tested: ${one.reason}`,
      );
    if (!one.ok)
      return errorFinding(
        `${id}/call`,
        `${provider} (${one.credential}) fails: ${one.reason ?? one.status}`,
        CREDENTIAL_HINT,
      );
    return okFinding(
      `${id}/call`,
      `${provider} (${one.credential}) responded with ${one.model} in ${one.ms} ms${one.usd === null ? "" : ` for $${one.usd}`}`,
    );
  });
}

async function checkModelList(
  made: DryRun,
  provider: string,
  credential: string,
): Promise<DoctorFinding> {
  const id = `providers.${provider}/call`;
  const one = made.listSources.find(
    (each) => each.provider === provider && each.credential === credential,
  );
  if (!one)
    return noteFinding(
      id,
      `${provider} (${credential}) has no model list`,
      `while a gateway is running, use tollgate providers test ${provider}`,
    );
  try {
    const models = await one.fetchModels(AbortSignal.timeout(TEST_TIMEOUT_MS));
    return okFinding(
      id,
      `${provider} (${credential}) lists ${plural(Array.isArray(models) ? models.length : 0, "model")}`,
    );
  } catch (cause) {
    const reached = !CONNECTION_CODES.has(getFault(cause)?.code ?? "");
    return errorFinding(
      id,
      `${provider} (${credential}): the model list is unavailable: ${publicErrorText(cause)}`,
      reached ? CREDENTIAL_HINT : "fix the connection to the provider first",
    );
  }
}

/**
 * Checks that the models behind configured names have prices, because budgets do not count calls
 * without a price.
 */
export async function checkPrices(
  config: GatewayConfig,
  made: DryRun,
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
      warningFinding(
        "prices/names",
        `${plural(without.length, "model")} under models: without a price: ${without.slice(0, MAX_NAMED).join(", ")}`,
        "calls without a price do not count toward budgets: set the price under " +
          "providers.<name>.models, and run tollgate models explain for known prices",
      ),
    );
  else if (wanted.some((id) => known.has(id)))
    found.push(okFinding("prices/names", "every model under models: has a price"));
  if (rest > 0)
    found.push(
      noteFinding(
        "prices/listed",
        `${rest} of ${plural(models.length, "model")} that providers list ${rest === 1 ? "has" : "have"} no price: direct requests to them are unpriced`,
      ),
    );
  return found;
}

/**
 * Checks the expiry dates of known data policies and of the policies that the operator declared.
 */
export function checkPolicies(config: GatewayConfig, made: DryRun): readonly DoctorFinding[] {
  const found: DoctorFinding[] = [];
  const look = (what: string, date: string | undefined, todo: string, end = date) => {
    if (date === undefined) return;
    const when = expiryState(end, POLICY_DAYS);
    if (when === "later") return;
    const expiry =
      when === "unreadable"
        ? `has an unreadable expiry date and counts as expired: "${date}"`
        : `${when === "over" ? "expired" : "expires"} on ${date}`;
    found.push(warningFinding("policy/expires", `${what} ${expiry}`, todo));
  };
  for (const { name, dataPolicy } of made.providers.values())
    look(
      `the built-in data policy of ${name}`,
      dataPolicy?.expires,
      "upgrade Tollgate: each release updates the policies",
    );
  for (const { name, credentials } of config.providers.values())
    for (const { name: credential, zdr } of credentials)
      look(
        `your declaration for ${name} (${credential})`,
        zdr?.until,
        "check the contract, and set its new expiry date in zdr.until",
        // The date is the last day of validity, including the whole day.
        zdr && `${zdr.until}T24:00Z`,
      );
  return found.length > 0
    ? found
    : [okFinding("policy/expires", `no data policy expires within ${POLICY_DAYS} days`)];
}
