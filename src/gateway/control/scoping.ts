// A giver that is held to one account: what it says is narrowed to that account before the command is run, and what it is shown
// afterwards. What is of another account is told as what is not there, in the same words and by the same way.
import { fail } from "../../model/error.ts";
import type { Json, JsonObject } from "../../model/values.ts";
import type { KeyRecord } from "../../plugin/key.ts";
import { plain } from "./asking.ts";
import type { Giver } from "./giver.ts";
import type { CommandFacts, Within } from "./command-facts.ts";

/** What accounts and keys there are. */
export interface ScopeWorld {
  /** From the outermost account to this one; just itself where it is not known. */
  path(account: string): readonly string[];
  keys(): Promise<readonly Pick<KeyRecord, "id" | "name" | "account" | "admin">[]>;
}

/** Fails if the giver is limited to an account and the command is about the whole gateway. */
export function mustBeScoped(
  { within: rule }: Pick<CommandFacts, "within">,
  { name, within }: Giver,
): void {
  if (within !== undefined && !rule)
    fail(
      "forbidden",
      `${name} is limited to the account ${within}, and this command is about the whole gateway.`,
      { code: "account_only" },
    );
}

/** Fails for what is of another account. Called after `mustBeScoped`. */
export async function narrowed(
  { within: rule }: Pick<CommandFacts, "within">,
  input: JsonObject,
  { within }: Giver,
  world: ScopeWorld,
): Promise<JsonObject> {
  if (within === undefined || !rule) return input;
  const said = { ...input };
  const account = rule.account === undefined ? undefined : accountIn(said, rule, within, world);
  if (account !== undefined) said[rule.account!] = account;
  if (rule.key !== undefined && said[rule.key] !== undefined)
    said[rule.key] = await keyIn(said[rule.key] as string, within, world);
  return said;
}

/** The answer, as such a giver may have it. */
export function kept(
  { within: rule }: Pick<CommandFacts, "within">,
  answer: unknown,
  { within }: Giver,
  world: ScopeWorld,
): unknown {
  if (within === undefined || !rule) return answer;
  const members = Object.entries(answer as JsonObject);
  const { shows } = rule;
  const shown: Record<string, JsonObject[string]> = Object.fromEntries(
    shows ? members.filter(([name]) => shows.includes(name)) : members,
  );
  if (rule.keeps) {
    const [list, by] = rule.keeps;
    shown[list] = (shown[list] as readonly JsonObject[]).filter((each) =>
      isIn(each[by], within, world),
    );
  }
  for (const list of rule.empties ?? []) shown[list] = [];
  return counted(shown, within, world);
}

/** What limits of accounts outside have counted is others' use too. */
function counted(answer: JsonObject, within: string, world: ScopeWorld): unknown {
  return JSON.parse(JSON.stringify(answer, plain), (name, value: unknown) =>
    name === "counted" && Array.isArray(value)
      ? value.filter(({ scope }: { scope: string }) => {
          const [, account] = /^account:(.*)$/.exec(scope) ?? [];
          return account === undefined || isIn(account, within, world);
        })
      : value,
  );
}

function accountIn(
  input: JsonObject,
  { account, fills }: Within,
  within: string,
  world: ScopeWorld,
): Json | undefined {
  const said = input[account!];
  if (said === undefined) return fills && within;
  if (isIn(said, within, world)) return said;
  return fail("not_found", `There is no account "${String(said)}" in ${within}.`, {
    code: "no_such_account",
  });
}

/** By its id; all keys are looked through, whosever they are, so that the time tells nothing. */
async function keyIn(said: string, within: string, world: ScopeWorld): Promise<string> {
  const own = (await world.keys()).filter(
    ({ account, admin }) => admin === undefined && isIn(account, within, world),
  );
  const ids = new Set(own.filter(({ id }) => id === said).map(({ id }) => id));
  if (ids.size === 0) for (const { id, name } of own) if (name === said) ids.add(id);
  const [id, ...others] = ids;
  if (others.length > 0)
    fail("invalid", `Several keys are named "${said}": say the id. ${[...ids].join(", ")}`);
  return id ?? fail("not_found", `There is no key "${said}".`, { code: "no_such_key" });
}

/** An account by its name, or as rows say it: "acme/research". */
function isIn(said: Json | undefined, within: string, world: ScopeWorld): boolean {
  if (typeof said !== "string") return false;
  return (said.includes("/") ? said.split("/") : world.path(said)).includes(within);
}
