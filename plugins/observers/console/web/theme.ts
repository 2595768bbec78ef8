// Dark or light: as the system has it, or as the reader has chosen, which this browser remembers.
const NAME = "tollgate-theme";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

function chosen(): Theme {
  try {
    const said = localStorage.getItem(NAME);
    return said === "light" || said === "dark" ? said : "system";
  } catch {
    return "system";
  }
}

export const theme = {
  get: chosen,
  set(to: Theme): void {
    try {
      if (to === "system") localStorage.removeItem(NAME);
      else localStorage.setItem(NAME, to);
    } catch {
      // A browser that keeps nothing shows it until the page is left.
    }
    theme.apply(to);
  },
  apply(to: Theme = chosen()): void {
    if (to === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = to;
    dispatchEvent(new Event("tollgate-theme"));
  },
};
