// Entry of the importers. `tollgate import` and `tollgate keys import` load it when they run.
import { bifrost } from "./bifrost.ts";
import { type Importer, slug, type ConfigDraft } from "./config-draft.ts";
import { litellm } from "./litellm.ts";
import { portkey } from "./portkey.ts";
import { readFile } from "node:fs/promises";
import { readImportedKeys, type ImportedKey } from "./key-export.ts";
import { readBudget, readRateLimits } from "./amounts.ts";
import { SourceValue } from "./source-value.ts";

export { ConfigDraft, slug } from "./config-draft.ts";
export { readImportedKeys, toKeysJson, type ImportedKey } from "./key-export.ts";
export type { Importer } from "./config-draft.ts";
export {
  FINDING_KINDS,
  SourceValue,
  type FindingKind,
  type ImportFinding,
} from "./source-value.ts";

export const importers: readonly Importer[] = [litellm, portkey, bifrost];

// Imports keys and teams from exports of another gateway's tables. Teams become accounts, and keys
// keep their hashes and are assigned to these accounts.

const RATE_FIELDS = {
  requests: "rpm_limit",
  tokens: "tpm_limit",
  concurrent: "max_parallel_requests",
};

/** Imports teams as accounts, and returns the accounts by team ID. */
export async function importTeams(
  file: string,
  draft: ConfigDraft,
): Promise<{ accounts: ReadonlyMap<string, string>; source: SourceValue }> {
  const text = await readFile(file, "utf8");
  const source = SourceValue.parse(/^\s*\[/.test(text) ? `{"teams": ${text}}` : text, file);
  const accounts = new Map<string, string>();
  for (const kind of ["organizations", "teams"] as const)
    for (const each of source.get(kind).readList()) {
      const id = each.firstOf("team_id", "organization_id", "id").readText();
      if (id === undefined) {
        each.report("unsupported", "the ID is missing");
        continue;
      }
      const name = each.firstOf("team_alias", "organization_alias", "name").readText();
      const account = freeName(slug(name ?? id), draft);
      accounts.set(id, account);
      const parent = accounts.get(each.get("organization_id").readText() ?? "");
      const budget = readBudget(each.get("max_budget"), each.get("budget_duration"));
      const limits = [...(budget ? [budget] : []), ...readRateLimits(each, RATE_FIELDS)];
      const models = each
        .get("models")
        .readTexts()
        .filter((model) => !/^(all-|\*$)/.test(model));
      draft.accounts.set(account, {
        ...(kind === "teams" && parent !== undefined && { parent }),
        ...(name !== undefined && name !== account && { name }),
        ...(limits.length > 0 && { limits }),
        ...(models.length > 0 && { models }),
      });
      reportSpent(each);
    }
  return { accounts, source };
}

function freeName(wanted: string, draft: ConfigDraft): string {
  for (let i = 1; ; i++) {
    const name = i === 1 ? wanted : `${wanted}-${i}`;
    if (!draft.accounts.has(name)) return name;
  }
}

function reportSpent(of: SourceValue): void {
  const spend = of.get("spend");
  if ((spend.readNumber() ?? 0) > 0)
    spend.report(
      "approximate",
      "the spending of keys is imported with the keys (--keys); this total is not read",
    );
  for (const key of [
    "created_at",
    "updated_at",
    "metadata",
    "members_with_roles",
    "admins",
    "members",
    "blocked",
    "budget_reset_at",
  ])
    of.get(key).readValue();
}

/** Imports keys, with the accounts of their teams. */
export async function importKeys(
  file: string,
  accounts: ReadonlyMap<string, string>,
): Promise<{ keys: readonly ImportedKey[]; remarks: readonly string[] }> {
  const { keys, warnings, records } = await readImportedKeys(file, undefined);
  return {
    remarks: warnings.map((remark) => remark.replace(/\bteam_id, /g, "")),
    keys: keys.map((key, i) => {
      const account = accounts.get(String(records[i]?.["team_id"] ?? ""));
      const models = (key["models"] as readonly string[] | undefined)?.filter(
        (model) => !model.startsWith("all-"),
      );
      const { models: _, ...rest } = key;
      return {
        ...rest,
        ...(models && models.length > 0 && { models }),
        ...(account !== undefined && { account }),
      } as ImportedKey;
    }),
  };
}
