// The rules of the style guide that a program can check, each with the replacement.
import { findSpelling } from "./spelling.ts";
import type { Place, Sentence } from "./sentences.ts";

export interface Finding {
  readonly file: string;
  readonly line: number;
  readonly place: Place;
  readonly rule: string;
  /** Words that break the rule. */
  readonly words: string;
  readonly instead: string;
}

interface Rule {
  readonly name: string;
  readonly pattern: RegExp;
  readonly instead: string;
  /** Places that the rule applies to. If unset, all places. */
  readonly places?: readonly Place[];
}

const MAX_WORDS = 30;
const MAX_CELL_WORDS = 20;

/** Phrases that the style guide rules out. */
const RULES: readonly Rule[] = [
  {
    name: "headless opener",
    pattern: /^(?:What|Those that|That which|One that|Of|Where|So long)\b(?!.*\?$)/,
    instead: "begin with the noun: the gateway, the key, the request",
    places: ["page", "cell", "comment", "help", "schema", "log", "error", "text"],
  },
  {
    name: "heading",
    pattern: /^(?:What|How(?!-to)|More|Elsewhere|From here|Why)\b/,
    instead: "name the topic, or the task in the imperative",
    places: ["heading"],
  },
  {
    name: "speech verb for a machine",
    pattern:
      /\b(?:is|are|was|were) told\b|\bhears? of\b|\b(?:it|which|that) says\b|\bis asked\b|\bgoes to see\b/i,
    instead: "reports, receives, contains, calls, is notified",
  },
  {
    name: "posture verb",
    pattern:
      /\b(?:stands?|lies|lie|rests?) (?:in|on|at|there|beside|before|behind|with|by)\b|\b(?:lies|rests?) for\b/i,
    instead: "is, is in, is stored in, is configured next to",
  },
  { name: "idiom", pattern: /\b(?:anew|therein|thrice)\b/i, instead: "again, in it, three times" },
  { name: "idiom", pattern: /\bfor good\b/i, instead: "permanently" },
  { name: "idiom", pattern: /\bat once\b/i, instead: "immediately, or: concurrent" },
  { name: "idiom", pattern: /\bbeside\b/i, instead: "next to" },
  {
    name: "idiom",
    pattern: /\b(?:meanwhile|so long as)\b/i,
    instead: "in the meantime, as long as",
  },
  { name: "idiom", pattern: /\bcomes? to nothing\b/i, instead: "fails, has no effect" },
  { name: "idiom", pattern: /\bgoes on (?:to|until|with)\b/i, instead: "continues, stays in use" },
  {
    name: "missing noun",
    pattern:
      /\b(?:an?|the) (?:new|newer|newest|old|older|later|latest|earlier|longer|longest|shorter|shortest|larger|largest|smaller|smallest|other|different|bare|private) one\b(?! of)/i,
    instead: "repeat the noun: a later report, the old process",
  },
  {
    name: "of its own",
    pattern: /\bof (?:its|their) own(?=[.,:;)]|$| (?:and|because|for|in|or|that|to|with)\b)/i,
    instead: "separate, or: its own …",
  },
  {
    name: "opening",
    pattern: /^(?:So|But|And|Or|Nor|Only then|Only so|Thus|Hence)\b(?! (?:far|long)\b)/,
    instead: "therefore, however, after that",
    places: ["page", "comment", "help", "schema", "error"],
  },
  {
    name: "memory verb",
    pattern: /\b(?:remembers?|remembered|forgets?|forgot|forgotten|learns|learned|learnt)\b/i,
    instead: "stores, keeps, deletes, derives",
  },
  {
    name: "amount",
    pattern: /^(?:Returns|Counts|Reports|Measures|Shows?|Records) (?:what|how (?:many|much))\b/,
    instead: "the number of …, the amount of …, the received …",
  },
  {
    name: "idiom",
    pattern: /\b(?:thereby|thereof|thereafter|thereupon|whereupon|hence)\b/i,
    instead: "therefore, after that",
  },
  { name: "idiom", pattern: /, also (?:if|when|after|while)\b/i, instead: ", even if" },
  {
    name: "absent",
    pattern: /\b(?:absent|Absent)(?:[:,;]| means)|\bwhen absent\b/,
    instead: "Default: …, or: If unset, …",
  },
  {
    name: "no role",
    pattern: /\b(?:nobody|whoever|somebody|anybody|everybody)\b/i,
    instead: "name the role: a client, an operator, an administrator",
  },
  {
    name: "rate",
    pattern:
      /\b(?:requests?|tokens?|times?|calls?|seconds?|bytes?) an? (?:second|minute|hour|day|request|call)\b/i,
    instead: "per second, per minute",
  },
  {
    name: "at most",
    pattern:
      /\b\d[\d,.]*(?: ?(?:ms|s|MB|KB|MiB|KiB|GB|bytes|seconds|minutes|hours|days|lines|files|requests|tokens))? at most\b/i,
    instead: "up to 5 minutes, or: at most 5 minutes",
  },
  // Words of the glossary that have a common term.
  { name: "term", pattern: /\bstate folder\b/i, instead: "state directory" },
  { name: "term", pattern: /\b(?:signs? of life)\b/i, instead: "heartbeat" },
  { name: "term", pattern: /\btaken for dead\b/i, instead: "lease expired" },
  { name: "term", pattern: /\bundead\b/i, instead: "fenced gateway" },
  { name: "term", pattern: /\bverbatim lane\b/i, instead: "passthrough" },
  { name: "term", pattern: /\bturned away\b/i, instead: "rejected" },
  { name: "term", pattern: /\bgiven up\b|\bgives up\b/i, instead: "canceled, stops retrying" },
  { name: "term", pattern: /\bpictures\b/i, instead: "images" },
  { name: "term", pattern: /\bthoughts\b/i, instead: "reasoning" },
  { name: "term", pattern: /\bfirst content\b/i, instead: "first token" },
  { name: "term", pattern: /\bids? of tokens\b/i, instead: "token IDs" },
  { name: "term", pattern: /\b(?:resting|at rest|in rest)\b/i, instead: "in cooldown" },
  { name: "term", pattern: /\bmiddlewares\b/i, instead: "middleware" },
  { name: "term", pattern: /\bwhole answers?\b/i, instead: "non-streaming response" },
  { name: "term", pattern: /\bmay be repeated\b/i, instead: "(repeatable)", places: ["help"] },
  // Places with a form of their own.
  {
    name: "error opening",
    pattern: /^(?:This is no|It is|Say )\b/,
    instead: "Invalid …, Missing …, Unknown …, Cannot …, … not found",
    places: ["error"],
  },
  {
    name: "contraction",
    pattern: /\b(?:don't|can't|won't|isn't|aren't|doesn't|it's|you're|we'll)\b/i,
    instead: "the long form",
    places: ["error", "help", "schema", "log", "cell"],
  },
  {
    name: "log line",
    pattern: /^[A-Z][a-z]+ [a-z]|\.$|\b(?:the|an?) /,
    instead: "lowercase, no period, no article: config reloaded",
    places: ["log"],
  },
];

const wordsOf = (text: string): number => text.split(/\s+/).length;
const excerpt = (text: string): string => (text.length > 90 ? `${text.slice(0, 87)}…` : text);

/** Returns the rules that a sentence breaks. Code between backticks, links, and quotes is ignored. */
export function judge({ file, line, place, text }: Sentence): Finding[] {
  const plain = text.replace(/`[^`]*`/g, "`x`").replace(/\]\([^)]*\)/g, "]");
  if (!/[a-z]{2}/.test(plain)) return [];
  const at = { file, line, place };
  const found: Finding[] = RULES.filter(
    ({ places, pattern }) => (!places || places.includes(place)) && pattern.test(plain),
  ).map(({ name: rule, pattern, instead }) => ({
    ...at,
    rule,
    words: excerpt(pattern.exec(plain)![0]),
    instead,
  }));
  for (const { word, instead } of findSpelling(plain))
    found.push({ ...at, rule: "spelling", words: word, instead });
  const count = wordsOf(plain);
  if (place === "cell" && count > MAX_CELL_WORDS)
    found.push({
      ...at,
      rule: "long cell",
      words: excerpt(plain),
      instead: `${MAX_CELL_WORDS} words; move the rest below the table`,
    });
  else if (place !== "cell" && count > MAX_WORDS)
    found.push({
      ...at,
      rule: "long sentence",
      words: excerpt(plain),
      instead: "one idea per sentence, 25 words",
    });
  return found;
}
