// Units of service managers, with the paths of this installation put in. They are printed, and nothing is installed.
import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { packageRoot } from "../config/default.ts";
import { fail } from "../model/error.ts";
import { type CliCommand, CONFIG, EXIT, type CliInput, group, type Part } from "./command.ts";
import { configFile } from "./loading.ts";
import { remark, say, sayJson } from "./terminal.ts";

const KINDS = ["systemd", "launchd"] as const;

const PRINT: Part = {
  usage: "service print <systemd|launchd> [options]",
  summary: "print a unit with the paths of this installation",
  about:
    "Prints a unit for systemd, or a list of properties for launchd, with the paths of this Node, this program, gateway.yaml and the state " +
    "folder. It installs nothing.",
  options: {
    ...CONFIG,
    "state-dir": {
      value: "folder",
      about: "where keys and ledger are; systemd keeps them in /var/lib/tollgate by default",
    },
    socket: { about: "of systemd the socket, which holds the port while the gateway starts again" },
  },
  words: { least: 1, most: 1 },
  examples: [
    "tollgate service print systemd -c /etc/tollgate/gateway.yaml",
    "tollgate service print systemd --socket",
    "tollgate service print launchd",
  ],
  run: print,
};

export const command: CliCommand = group(
  "service",
  "What a service manager of this machine needs to run the gateway.",
  { print: PRINT },
);

const template = (path: string) => readFileSync(join(packageRoot(), "deploy", path), "utf8");

async function print(given: CliInput): Promise<number> {
  const kind = KINDS.find((each) => each === given.words[0]);
  if (!kind) return fail("invalid", `It is one of ${KINDS.join(", ")}.`, { code: "usage" });
  const paths = {
    node: process.execPath,
    program: realpathSync(process.argv[1]!),
    file: configFile(given) ?? "/etc/tollgate/gateway.yaml",
    stateDir: given.text("state-dir"),
  };
  const text = kind === "launchd" ? plist(paths) : given.has("socket") ? socket() : unit(paths);
  if (given.json) sayJson({ kind, text });
  else say(text.trimEnd());
  if (process.stdout.isTTY)
    remark(
      kind === "launchd"
        ? "\nKeep it as ~/Library/LaunchAgents/io.tollgate.gateway.plist, then launchctl bootstrap gui/$UID that file"
        : `\nKeep it as /etc/systemd/system/tollgate.${given.has("socket") ? "socket" : "service"}, then systemctl daemon-reload`,
    );
  return EXIT.fine;
}

interface Paths {
  readonly node: string;
  readonly program: string;
  readonly file: string;
  readonly stateDir: string | undefined;
}

const socket = (): string => template("systemd/tollgate.socket");

const HOMES = /^\/(home|root|run\/user)\//;

function unit({ node, program, file, stateDir = "/var/lib/tollgate" }: Paths): string {
  const words = [node, program, "serve", "-c", file, "--state-dir", stateDir];
  let text = template("systemd/tollgate.service").replace(
    /^ExecStart=.*$/m,
    () => `ExecStart=${words.map(quoted).join(" ")}`,
  );
  if ([node, program, file].some((path) => HOMES.test(path)))
    text = text.replace("ProtectHome=yes", "ProtectHome=read-only");
  if (stateDir === "/var/lib/tollgate") return text;
  return text
    .replace(/^StateDirectory(Mode)?=.*\n/gm, "")
    .replace(
      "ProtectSystem=strict",
      () => `ProtectSystem=strict\nReadWritePaths=${quoted(resolve(stateDir))}`,
    )
    .replace("HOME=/var/lib/tollgate", () => `HOME=${stateDir}`);
}

/** As systemd reads a command line: % and $ stand for something, and so do quotes and backslashes. */
const quoted = (word: string): string => {
  const plain = word.replaceAll("%", "%%").replaceAll("$", () => "$$");
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, "\\$&")}"`;
};

const escaped = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function plist({ node, program, file, stateDir }: Paths): string {
  const words = [
    node,
    program,
    "serve",
    "-c",
    file,
    ...(stateDir ? ["--state-dir", stateDir] : []),
  ];
  const list = words.map((word) => `    <string>${escaped(word)}</string>`).join("\n");
  return template("launchd/tollgate.plist")
    .replace(
      /(<key>ProgramArguments<\/key>\s*<array>\n)[\s\S]*?(\n\s*<\/array>)/,
      (_, a, b) => `${a}${list}${b}`,
    )
    .replace("/usr/local/var/tollgate", () => escaped(dirname(file)));
}
