// `tollgate usage`: sums by any dimension, in any format, and unknown names.
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { runCliInProcess } from "../kit/process/command-line.ts";
import { type InProcessGateway, startInProcess } from "../kit/in-process.ts";

const YAML = `
frontends: [messages, chat-completions, usage]
middleware: [auth, { use: usage, with: { label_headers: [x-team] } }]
providers:
  demo: { use: demo }
accounts: { acme: {} }
`;
const FORMULA = '=HYPERLINK("http://x","y")';

let daemon: InProcessGateway;
let formula = "";
beforeAll(async () => {
  daemon = await startInProcess({ yaml: YAML });
  const { secret } = (await daemon.ask("keys.create", {
    name: FORMULA,
    account: "acme",
  })) as never as {
    secret: string;
  };
  formula = secret;
  for (const [key, team] of [
    [daemon.key, "core"],
    [formula, '@sum,"x"\n'.trim()],
    [formula, "+1"],
  ] as const)
    await asked(key, team);
  const { items } = (await daemon.ask("ledger.entries", { state: "exact" })) as never as {
    items: readonly { attempt: string }[];
  };
  await daemon.ask("ledger.adjust", {
    attempt: items[0]!.attempt,
    usd: "-0.000000123",
    reason: "refund",
  });
});
/** One call. */
const asked = (key: string, team: string) =>
  fetch(`${daemon.url}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      authorization: `Bearer ${key}`,
      "x-team": team,
    },
    body: JSON.stringify({ model: "demo/echo", messages: [{ role: "user", content: "Hi" }] }),
  }).then((answer) => answer.text());
afterAll(() => daemon?.[Symbol.asyncDispose]());

const usage = (...words: string[]) => asksHere("usage", ...words);
const asksHere = (...words: string[]) =>
  runCliInProcess([...words, "--state-dir", daemon.stateDir]);

/** By RFC 4180: cells by line. */
function cellsOf(csv: string): string[][] {
  expect(csv.endsWith("\r\n")).toBe(true);
  const rows: string[][] = [[]];
  for (let i = 0; i < csv.length;) {
    const found = /^(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r\n)/.exec(csv.slice(i));
    expect(found, csv.slice(i, i + 40)).not.toBeNull();
    rows.at(-1)!.push(found![1]?.replaceAll('""', '"') ?? found![2]!);
    if (found![3] === "\r\n") rows.push([]);
    i += found![0].length;
  }
  return rows.slice(0, -1);
}

/** Decimal dollars as nano-dollars. */
function nano(text: string): bigint {
  expect(text).toMatch(/^-?\d+(\.\d{1,9})?$/);
  const [whole, part = ""] = text.replace("-", "").split(".");
  return BigInt(whole! + part.padEnd(9, "0")) * (text.startsWith("-") ? -1n : 1n);
}
const total = async () =>
  nano((JSON.parse((await usage("--json")).out) as { total: { usd: string } }).total.usd);

describe("by any dimension", () => {
  it.each([
    ["key", ["first", FORMULA]],
    ["account", ["-", "acme"]],
    ["provider", ["demo"]],
    ["model", ["demo/echo"]],
    ["frontend", ["chat-completions"]],
    ["outcome", ["adjusted", "ok"]],
    ["label", ["x-team=+1", "x-team=core"]],
  ])("by %s, with a row for each", async (by, names) => {
    const { code, out } = await usage("--by", by);
    expect(code).toBe(0);
    for (const name of names)
      expect(out).toMatch(new RegExp(`^${name.replaceAll(/[^\w ]/g, "\\$&")} +\\d`, "m"));
  });

  it("accepts filters, and a key by its name", async () => {
    const of = async (...words: string[]) =>
      JSON.parse((await usage("--json", ...words)).out).total.calls;
    expect(await of()).toBe(3);
    expect(await of("--key", FORMULA)).toBe(2);
    expect(await of("--label", "x-team=core", "--model", "demo/echo")).toBe(1);
    expect(
      await of("--model", "echo", "--provider", "demo", "--frontend", "chat-completions"),
    ).toBe(3);
    expect(await of("--outcome", "adjusted")).toBe(0);
    expect(await of("--since", "1h", "--tz", "Asia/Kolkata", "--by", "day,hour")).toBe(3);
  });
});

describe("an unknown name is an error that suggests the right one", () => {
  it.each([
    [["--model", "demo/ecco"], 'model "demo/ecco". Did you mean "demo/echo"?'],
    [["--provider", "dmeo"], 'Did you mean "demo"?'],
    [["--key", "frist"], 'Key "frist" not found'],
    [["--label", "x-team=cor"], 'Did you mean "x-team=core"?'],
    [["--account", "acmee"], 'Did you mean "acme"?'],
    [["--frontend", "mesages"], 'Did you mean "messages"?'],
    [["--outcome", "okk"], 'Did you mean "ok"?'],
    [["--credential", "nothing-like-it"], 'credential "nothing-like-it"'],
    [["--tz", "Europe/Berln"], 'Did you mean "Europe/Berlin"?'],
    [["--by", "modle"], 'Did you mean "model"?'],
    [["--by", "day", "--focus"], "--focus and --by cannot be used together"],
    [["--since", "yestermorrow"], "Invalid --since"],
    [["--csv", "--plot"], "Only one of --json, --csv, --focus or --plot"],
  ])("%j", async (words, said) => {
    const { code, out, err } = await usage(...words);
    expect(code).toBe(1);
    expect(err).toContain(said);
    expect(out + err).not.toContain("No usage found");
  });

  it("accepts an existing name without usage in the range", async () => {
    for (const words of [
      ["--frontend", "messages"],
      ["--provider", "demo", "--until", "2026-01-01"],
    ]) {
      const { code, err } = await usage(...words);
      expect([code, err]).toEqual([0, expect.stringContaining("No usage found.")]);
    }
  });
});

describe("for other programs", () => {
  it("--csv: prints complete cells, no formulas, and sums that equal the total", async () => {
    const [head, ...rows] = cellsOf((await usage("--csv", "--by", "key,label,day")).out);
    expect(head!.slice(0, 4)).toEqual(["key", "label", "day", "key_name"]);
    for (const row of rows) {
      expect(row).toHaveLength(head!.length);
      for (const cell of row.slice(0, 4)) expect(cell).not.toMatch(/^[=+\-@\t\r]/);
    }
    expect(rows.map((row) => row[3])).toContain(`'${FORMULA}`);
    const usd = head!.indexOf("usd");
    expect(rows.reduce((sum, row) => sum + nano(row[usd]!), 0n)).toBe(await total());
  });

  it("--focus: prints the columns of FOCUS 1.2, and charges that equal the total", async () => {
    const { out } = await usage("--focus", "--tz", "Europe/Berlin");
    const [head, ...rows] = cellsOf(out);
    const of = (row: string[]) => Object.fromEntries(head!.map((name, i) => [name, row[i]!]));
    for (const row of rows) checkCharge(of(row));
    expect(rows.reduce((sum, row) => sum + nano(of(row)["BilledCost"]!), 0n)).toBe(await total());
    expect(rows.map((row) => of(row)["ChargeCategory"])).toContain("Adjustment");
  });

  it("ledger export --csv: prints one line per row, no formulas, and columns that equal the totals", async () => {
    const { out } = await asksHere("ledger", "export", "--csv");
    const [head, ...lines] = cellsOf(out);
    const rows = lines.map((line) => Object.fromEntries(head!.map((name, i) => [name, line[i]!])));
    for (const line of lines) {
      expect(line).toHaveLength(head!.length);
      for (const [i, cell] of line.entries())
        if (head![i] !== "usd") expect(cell).not.toMatch(/^[=+\-@\t\r]/);
    }
    const { out: json } = await asksHere("ledger", "export");
    const plain = json.trimEnd().split("\n");
    expect(rows.map(({ seq, attempt }) => [Number(seq), attempt])).toEqual(
      plain.map((line) => {
        const { seq, attempt } = JSON.parse(line) as { seq: number; attempt: string };
        return [seq, attempt];
      }),
    );
    expect(new Set(rows.map(({ kind }) => kind))).toEqual(new Set(["reserve", "settle", "adjust"]));
    const sum = (name: string) =>
      rows.reduce((all, row) => all + (row[name] === "" ? 0n : nano(row[name]!)), 0n);
    expect(sum("usd")).toBe(await total());
    const { usage: used } = (
      (await daemon.ask("ledger.totals", { by: ["model"] })) as unknown as {
        total: { usage: { input: number; output: number } };
      }
    ).total;
    expect(sum("input")).toBe(nano(String(used.input)));
    expect(sum("output")).toBe(nano(String(used.output)));
    expect(rows.map(({ labels }) => JSON.parse(labels!))).toContainEqual({ "x-team": "core" });
    expect((await asksHere("ledger", "export", "--csv", "--json")).err).toContain(
      "--json and --csv cannot be used together",
    );
  });

  it("--plot: draws bars in proportion to their values", async () => {
    const drawn = async () => {
      const [head, ...sums] = cellsOf((await usage("--csv", "--by", "key")).out);
      const of = (row: readonly string[], name: string) => row[head!.indexOf(name)]!;
      const { out } = await usage("--plot", "--by", "key");
      const lines = out.split("\n").filter((line) => line.includes("█"));
      expect(lines).toHaveLength(sums.length);
      return sums.map((row) => {
        const line = lines.find((one) => one.includes(of(row, "key_name").replace(/^'/, "")))!;
        const eighths = eighthsOf(line.slice(line.lastIndexOf(" ") + 1));
        return { eighths, calls: Number(of(row, "calls")), usd: Number(of(row, "usd")) };
      });
    };
    type Drawn = Awaited<ReturnType<typeof drawn>>;
    const fair = (bars: Drawn, size: "calls" | "usd") => {
      const [most, least] = bars.toSorted((a, b) => b[size] - a[size]);
      expect([most!.eighths % 8, most!.eighths >= 80]).toEqual([0, true]);
      expect(most![size]).toBeGreaterThan(least![size]);
      const share = (least![size] / most![size]) * most!.eighths;
      expect(Math.abs(least!.eighths - share)).toBeLessThanOrEqual(0.5);
    };
    // Without cost, the bars show calls.
    fair(await drawn(), "calls");
    // The key with fewer requests pays more.
    const { items } = (await daemon.ask("ledger.entries", { state: "exact" })) as never as {
      items: readonly { attempt: string; labels: { "x-team"?: string } }[];
    };
    for (const { attempt, labels } of items)
      await daemon.ask("ledger.adjust", {
        attempt,
        usd: labels["x-team"] === "core" ? "7" : "1.5",
        reason: "a price was missing",
      });
    fair(await drawn(), "usd");
  });
});

it("rejects a name with terminal control characters", async () => {
  const asked = daemon.ask("keys.create", { name: "\u001b[2Jgone\u202e" });
  await expect(asked).rejects.toThrow(/name: expected printable text/);
});

/** The length of a bar, to an eighth of a character. */
const eighthsOf = (drawn: string): number =>
  [...drawn].reduce((sum, char) => {
    const eighths = 0x2590 - char.codePointAt(0)!;
    expect(eighths).toSatisfy((n: number) => n >= 1 && n <= 8);
    return sum + eighths;
  }, 0);

/** Requirements of the specification for a charge. */
const NOT_NULL = [
  "BilledCost",
  "BillingAccountId",
  "BillingCurrency",
  "BillingPeriodEnd",
  "BillingPeriodStart",
  "ChargeCategory",
  "ChargePeriodEnd",
  "ChargePeriodStart",
  "ContractedCost",
  "EffectiveCost",
  "InvoiceIssuerName",
  "ListCost",
  "ProviderName",
  "PublisherName",
  "ServiceCategory",
  "ServiceName",
];
const NULLABLE = [
  "BillingAccountName",
  "ChargeClass",
  "ChargeDescription",
  "PricingQuantity",
  "PricingUnit",
];
const DATES = NOT_NULL.filter((name) => name.includes("Period"));

function checkCharge(of: Record<string, string>): void {
  for (const name of [...NOT_NULL, ...NULLABLE]) expect(of).toHaveProperty(name);
  for (const name of NOT_NULL) expect(of[name], name).not.toBe("");
  for (const name of Object.keys(of)) expect(name).toMatch(/^(x_[a-z_]+|[A-Z][A-Za-z]+)$/);
  for (const name of DATES) expect(of[name]).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
  for (const name of ["BilledCost", "ContractedCost", "EffectiveCost", "ListCost"]) nano(of[name]!);
  expect(of["BillingCurrency"]).toMatch(/^[A-Z]{3}$/);
  expect(["Usage", "Adjustment"]).toContain(of["ChargeCategory"]);
  expect(["", "Correction"]).toContain(of["ChargeClass"]);
  expect(of["ChargePeriodStart"]! < of["ChargePeriodEnd"]!).toBe(true);
  expect(of["BillingPeriodStart"]! <= of["ChargePeriodStart"]!).toBe(true);
  expect(of["ChargePeriodEnd"]! <= of["BillingPeriodEnd"]!).toBe(true);
  expect(of["ServiceCategory"]).toBe("AI and Machine Learning");
  expect(typeof JSON.parse(of["Tags"]!)).toBe("object");
  if (of["ChargeCategory"] !== "Usage") return;
  expect(of["ConsumedQuantity"]).toMatch(/^\d+(\.\d+)?$/);
  expect(of["ConsumedUnit"]).not.toBe("");
  expect(of["PricingQuantity"]).toBe(of["ConsumedQuantity"]);
}

describe("tollgate caches", () => {
  const caches = (...words: string[]) => asksHere("caches", ...words);

  it("shows each key, and JSON with its counts", async () => {
    const table = await caches();
    expect(table.out).toMatch(/^key +calls +input +cached +share +written +never read/);
    const { by, rows } = JSON.parse((await caches("--json")).out) as {
      by: string;
      rows: readonly Record<string, unknown>[];
    };
    expect(by).toBe("key");
    expect(rows).toHaveLength(2);
    expect(rows.find(({ key_name: name }) => name === FORMULA)).toMatchObject({
      calls: 2,
      cached_tokens: 0,
      cached_percent: 0,
      written_tokens: 0,
      unread_tokens: 0,
    });
  });

  it("groups by the values of a label, and rejects unknown groups", async () => {
    const { rows } = JSON.parse((await caches("--scope", "x-team", "--json")).out) as {
      rows: readonly { name: string }[];
    };
    expect(rows.map(({ name }) => name)).toContain("core");
    expect((await caches("--by", "keys")).err).toContain('did you mean "key"?');
    expect((await caches("--by", "key", "--scope", "x-team")).code).not.toBe(0);
  });
});
