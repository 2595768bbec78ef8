// Prints unit files for service managers, with the paths of this installation. It installs nothing.
import { readFileSync, realpathSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { findPackageRoot } from "../../../lib/package-root.ts";
import { fail } from "../../../model/error.ts";
import {
  type CliCommand,
  CONFIG_OPTIONS,
  EXIT_CODES,
  type CliInput,
  createCommandGroup,
  type Subcommand,
} from "../../support/command.ts";
import { configFile } from "../../support/load-config.ts";
import { printRemark, print, printJson } from "../../format/terminal.ts";

const SERVICE_MANAGERS = ["systemd", "launchd"] as const;

const PRINT_COMMAND: Subcommand = {
  usage: "service print <systemd|launchd> [options]",
  summary: "Print a systemd unit or launchd property list",
  description:
    "Prints a systemd unit or a launchd property list with the paths of Node, this " +
    "program, gateway.yaml, and the state directory. It installs nothing.",
  options: {
    ...CONFIG_OPTIONS,
    "state-dir": {
      placeholder: "directory",
      description: "State directory for keys and ledger (default for systemd: /var/lib/tollgate)",
    },
    socket: {
      description: "Print the systemd socket unit, which holds the port while the gateway restarts",
    },
  },
  positionals: { least: 1, most: 1 },
  examples: [
    "tollgate service print systemd -c /etc/tollgate/gateway.yaml",
    "tollgate service print systemd --socket",
    "tollgate service print launchd",
  ],
  run: printUnit,
};

export const command: CliCommand = createCommandGroup(
  "service",
  "Prints service manager files that run the gateway.",
  { print: PRINT_COMMAND },
);

const readTemplate = (path: string) =>
  readFileSync(join(findPackageRoot(), "deploy", path), "utf8");

async function printUnit(given: CliInput): Promise<number> {
  const kind = SERVICE_MANAGERS.find((each) => each === given.positionals[0]);
  if (!kind)
    return fail("invalid", `The service manager must be one of ${SERVICE_MANAGERS.join(", ")}.`, {
      code: "usage",
    });
  const paths = {
    node: process.execPath,
    program: realpathSync(process.argv[1]!),
    file: configFile(given) ?? "/etc/tollgate/gateway.yaml",
    stateDir: given.getText("state-dir"),
  };
  const text =
    kind === "launchd"
      ? launchdPlist(paths)
      : given.has("socket")
        ? systemdSocket()
        : systemdUnit(paths);
  if (given.json) printJson({ kind, text });
  else print(text.trimEnd());
  if (process.stdout.isTTY)
    printRemark(
      kind === "launchd"
        ? "\nSave it as ~/Library/LaunchAgents/io.tollgate.gateway.plist, then run " +
            "launchctl bootstrap gui/$UID with that file"
        : `\nSave it as /etc/systemd/system/tollgate.${given.has("socket") ? "socket" : "service"}, then run systemctl daemon-reload`,
    );
  return EXIT_CODES.ok;
}

interface ServicePaths {
  readonly node: string;
  readonly program: string;
  readonly file: string;
  readonly stateDir: string | undefined;
}

const systemdSocket = (): string => readTemplate("systemd/tollgate.socket");

const HOME_FOLDERS = /^\/(home|root|run\/user)\//;

function systemdUnit({
  node,
  program,
  file,
  stateDir = "/var/lib/tollgate",
}: ServicePaths): string {
  const words = [node, program, "serve", "-c", file, "--state-dir", stateDir];
  let text = readTemplate("systemd/tollgate.service").replace(
    /^ExecStart=.*$/m,
    () => `ExecStart=${words.map(quoteSystemd).join(" ")}`,
  );
  if ([node, program, file].some((path) => HOME_FOLDERS.test(path)))
    text = text.replace("ProtectHome=yes", "ProtectHome=read-only");
  if (stateDir === "/var/lib/tollgate") return text;
  return text
    .replace(/^StateDirectory(Mode)?=.*\n/gm, "")
    .replace(
      "ProtectSystem=strict",
      () => `ProtectSystem=strict\nReadWritePaths=${quoteSystemd(resolve(stateDir))}`,
    )
    .replace("HOME=/var/lib/tollgate", () => `HOME=${stateDir}`);
}

/** Quotes a word for a systemd command line, in which %, $, quotes, and backslashes are special. */
const quoteSystemd = (word: string): string => {
  const plain = word.replaceAll("%", "%%").replaceAll("$", () => "$$");
  return /^[\w@%+=:,./$-]+$/.test(plain) ? plain : `"${plain.replace(/[\\"]/g, "\\$&")}"`;
};

const escapeXml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

function launchdPlist({ node, program, file, stateDir }: ServicePaths): string {
  const words = [
    node,
    program,
    "serve",
    "-c",
    file,
    ...(stateDir ? ["--state-dir", stateDir] : []),
  ];
  const list = words.map((word) => `    <string>${escapeXml(word)}</string>`).join("\n");
  return readTemplate("launchd/tollgate.plist")
    .replace(
      /(<key>ProgramArguments<\/key>\s*<array>\n)[\s\S]*?(\n\s*<\/array>)/,
      (_, a, b) => `${a}${list}${b}`,
    )
    .replace("/usr/local/var/tollgate", () => escapeXml(dirname(file)));
}
