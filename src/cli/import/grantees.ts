// Keys and teams of another gateway, out of exports of its tables: teams become accounts, keys keep their hashes and stand in them.
import { readFile } from "node:fs/promises";
import type { JsonObject } from "../../model/values.ts";
import { importedKeys } from "../imported-keys.ts";
import { budgetOf, ratesOf } from "./amounts.ts";
import { slug, type Draft } from "./draft.ts";
import { Said } from "./said.ts";

/** As `tollgate keys import` reads it. */
export type ImportedKey = JsonObject;

const RATES = { requests: "rpm_limit", tokens: "tpm_limit", concurrent: "max_parallel_requests" };

/** The accounts that teams became, by their ids. */
export async function teamsOf(
  file: string,
  draft: Draft,
): Promise<{ accounts: ReadonlyMap<string, string>; said: Said }> {
  const text = await readFile(file, "utf8");
  const said = Said.of(/^\s*\[/.test(text) ? `{"teams": ${text}}` : text, file);
  const accounts = new Map<string, string>();
  for (const kind of ["organizations", "teams"] as const)
    for (const each of said.get(kind).list()) {
      const id = each.any("team_id", "organization_id", "id").text();
      if (id === undefined) {
        each.find("unsupported", "it has no id");
        continue;
      }
      const name = each.any("team_alias", "organization_alias", "name").text();
      const account = free(slug(name ?? id), draft);
      accounts.set(id, account);
      const parent = accounts.get(each.get("organization_id").text() ?? "");
      const budget = budgetOf(each.get("max_budget"), each.get("budget_duration"));
      const limits = [...(budget ? [budget] : []), ...ratesOf(each, RATES)];
      const models = each
        .get("models")
        .texts()
        .filter((model) => !/^(all-|\*$)/.test(model));
      draft.accounts.set(account, {
        ...(kind === "teams" && parent !== undefined && { parent }),
        ...(name !== undefined && name !== account && { name }),
        ...(limits.length > 0 && { limits }),
        ...(models.length > 0 && { models }),
      });
      spent(each);
    }
  return { accounts, said };
}

function free(wanted: string, draft: Draft): string {
  for (let i = 1; ; i++) {
    const name = i === 1 ? wanted : `${wanted}-${i}`;
    if (!draft.accounts.has(name)) return name;
  }
}

function spent(of: Said): void {
  const spend = of.get("spend");
  if ((spend.number() ?? 0) > 0)
    spend.find(
      "approximate",
      "what its keys have spent is carried over with them (--keys); this sum is not read by itself",
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
    of.get(key).take();
}

/** Keys with the accounts that their teams became. */
export async function keysOf(
  file: string,
  accounts: ReadonlyMap<string, string>,
): Promise<{ keys: readonly ImportedKey[]; remarks: readonly string[] }> {
  const { keys, remarks, records } = await importedKeys(file, undefined);
  return {
    remarks: remarks.map((remark) => remark.replace(/\bteam_id, /g, "")),
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
