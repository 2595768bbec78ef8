// Patterns of model names with up to three stars, in every place that accepts one. Each matches the
// same names as the equivalent regular expression, or `check` rejects it and suggests an accepted
// form.
import { loadConfig } from "../../../src/config/load-config.ts";
import { jsonResponse, startUpstream } from "tollgate/testing";
import { startDaemon } from "../../kit/process/daemon.ts";
import { until } from "../../kit/wait.ts";
import { load } from "../../unit/config/stubs.ts";
import type { Chance } from "../rig.ts";
import { TRIES } from "./bodies.ts";
import type { Attack, Site } from "./target.ts";

const meant = (pattern: string): RegExp =>
  new RegExp(
    `^${pattern
      .split("*")
      .map((piece) => piece.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
      .join(".*")}$`,
  );
const starsIn = (text: string): number => text.split("*").length - 1;

/** Few letters, so that names match often, and a dot, which is special in a regular expression. */
const LETTERS = ["a", "b", "a.", "-"];
const word = (of: Chance, least: number): string =>
  Array.from({ length: least + of.below(4) }, () => of.one(LETTERS)).join("");
const pattern = (of: Chance, stars: number): string =>
  Array.from({ length: stars + 1 }, () => word(of, 0)).join("*") || "a";
/** Half of them are generated from the pattern. */
const nameFor = (of: Chance, its: string): string =>
  (of.often(0.5) && its.replaceAll("*", () => word(of, 0))) || word(of, 1);

const answer = (status: number) => (status === 200 ? "serves it" : `answers ${status}`);

/** `models` of a key: a request is served if one pattern matches. */
async function keys(site: Site, times: number): Promise<string[]> {
  const wrong: string[] = [];
  const { chance: of } = site;
  let matched = 0;
  for (let i = 0; i < times; i++) {
    const own = Array.from({ length: 1 + of.below(2) }, () => pattern(of, of.below(4)));
    const its = own.map((one) => `chat/${one}`);
    const key = await site.key(`pattern ${of.below(1e9)} ${i}`, { models: its });
    for (let n = 0; n < 4; n++) {
      const name = `chat/${nameFor(of, of.one(own))}`;
      const body = JSON.stringify({ model: name, messages: [{ role: "user", content: "a" }] });
      const { status } = await site.post("/v1/chat/completions", body, { key });
      const may = its.some((one) => meant(one).test(name));
      if (may) matched++;
      if (may !== (status === 200))
        wrong.push(`a key for ${its.join(", ")} ${answer(status)}: ${name}`);
    }
  }
  if (matched < times) wrong.push(`only ${matched} names matched the patterns of ${times} keys`);
  site.noted(`patterns: ${times} keys, ${times * 4} names, ${matched} matched`);
  return wrong;
}

const POOL = 24;

/** Patterns in a provider's options: matching models of its list are image models. */
async function options({ chance: of, noted }: Site, times: number): Promise<string[]> {
  const wrong: string[] = [];
  const all = Array.from({ length: POOL }, (_, i) => {
    const its = pattern(of, of.below(4));
    const names = Array.from({ length: Math.ceil(times / POOL) }, () => nameFor(of, its));
    return { id: `p${i}`, its, names: [...new Set(names)] };
  });
  await using up = await startUpstream({
    "GET /*": ({ path }) => {
      const names = all.find(({ id }) => path.startsWith(`/${id}/`))?.names ?? [];
      return jsonResponse({ object: "list", data: names.map((id) => ({ id, object: "model" })) });
    },
  });
  const providers = all.map(
    ({ id, its }) =>
      `  ${id}: { use: openai-compatible, with: { base_url: "${up.url}/${id}/v1", api_key: k, images: ["${its}"] } }\n`,
  );
  await using at = await startDaemon({
    yaml: `frontends: [chat-completions, images, models]\nstore: memory\nproviders:\n${providers.join("")}`,
  });
  const listed = async (query: string) => {
    const headers = { authorization: `Bearer ${at.key}` };
    const res = await fetch(`${at.url}/v1/models${query}`, { headers });
    const { data } = (await res.json()) as { data: { id: string }[] };
    return new Set(data.map(({ id }) => id));
  };
  const known = all.flatMap(({ id, its, names }) =>
    names.map((name) => ({ id: `${id}/${name}`, its, matches: meant(its).test(name) })),
  );
  // Lists are fetched in the background.
  await until(async () => {
    const found = await listed("");
    return known.every(({ id }) => found.has(id));
  });
  const images = await listed("?operation=image");
  for (const { id, its, matches } of known)
    if (matches !== images.has(id))
      wrong.push(`images: ["${its}"]: ${id} is ${matches ? "no" : "an"} image model`);
  const matched = known.filter(({ matches }) => matches).length;
  if (matched === 0) wrong.push("no name matched a pattern of a provider");
  noted(`patterns: ${POOL} providers, ${known.length} names, ${matched} matched`);
  return wrong;
}

const REFUSALS = new Set(["config/bad-name", "config/two-stars", "config/star-without-match"]);

/**
 * Names under `models` may contain one star for the matched text. Any other form is rejected, and
 * the suggested form is accepted.
 */
async function routes({ chance: of, noted }: Site, times: number): Promise<string[]> {
  const wrong: string[] = [];
  let refused = 0;
  const check = async (name: string, candidate: string) => {
    const text = `providers: { demo: {} }\nmodels: { ${JSON.stringify(name)}: [${JSON.stringify(candidate)}] }\n`;
    const { problems } = await loadConfig("/gateway.yaml", {
      env: {},
      loadPlugin: load,
      textOverride: text,
    });
    return problems.filter(({ severity }) => severity === "error");
  };
  for (let i = 0; i < times; i++) {
    const name = pattern(of, of.below(4));
    const candidate = `demo/${pattern(of, of.below(4))}`;
    const fits = starsIn(name) <= 1 && starsIn(candidate) <= starsIn(name);
    const problems = await check(name, candidate);
    const what = `models: { "${name}": ["${candidate}"] }`;
    if (fits !== (problems.length === 0))
      wrong.push(`${what} is ${fits ? "rejected" : "accepted"}`);
    if (problems.length > 0) refused++;
    for (const { id, message, line, hint } of problems) {
      if (!REFUSALS.has(id) || line === 0) wrong.push(`${what}: ${id} ${message}`);
      const [, form] = /such as "(.*)"/.exec(`${message} ${hint}`) ?? [];
      if (form !== undefined && starsIn(name) === 1 && (await check(name, form)).length > 0)
        wrong.push(`${what}: the form "${form}" is rejected too`);
    }
  }
  noted(`patterns: ${times} names under models, ${refused} rejected`);
  return wrong;
}

/** CPU time for one request. */
const MOST_MS = 250;

/** Patterns and names that are worst for a backtracking matcher. */
async function worst(site: Site): Promise<string[]> {
  const wrong: string[] = [];
  const models = [
    `${"*a".repeat(120)}*c`,
    `*${"a".repeat(120)}b*${"a".repeat(120)}b*`,
    `${"*ab".repeat(80)}*c`,
    `*${"a".repeat(250)}b`,
  ];
  const key = await site.key(`worst ${site.chance.below(1e9)}`, { models });
  let most = 0;
  for (const unit of ["a", "ab", "aab"])
    for (const length of [200, 20_000, 30_000_000]) {
      const model = `chat/${unit.repeat(length / unit.length)}`;
      const body = JSON.stringify({ model, messages: [{ role: "user", content: "a" }] });
      let spent = Infinity;
      let status = 0;
      for (let tries = TRIES; tries > 0 && spent > MOST_MS; tries--) {
        await site.gauge();
        ({ status } = await site.post("/v1/chat/completions", body, { key }));
        spent = Math.min(spent, (await site.gauge()).spent);
      }
      most = Math.max(most, spent);
      if (status === 0 || status === 200 || status >= 500)
        wrong.push(`a name of ${length} letters "${unit}": ${status}`);
      if (spent > MOST_MS)
        wrong.push(`a name of ${length} letters "${unit}": ${spent.toFixed(0)} ms of CPU`);
    }
  site.noted(`patterns: at most ${most.toFixed(0)} ms of CPU for one name`);
  return wrong;
}

export const patternsAttack = (requests: number): Attack => ({
  name: "patterns with up to three stars",
  async run(site) {
    const times = Math.max(20, Math.min(400, Math.ceil(requests / 40)));
    return [
      ...(await keys(site, times)),
      ...(await options(site, times * 4)),
      ...(await routes(site, times * 4)),
      ...(await worst(site)),
    ];
  },
});
