import { effect, signal } from "@preact/signals";

export type Theme = "system" | "light" | "dark";

const KEY = "pawl-theme";
const THEMES: readonly Theme[] = ["system", "light", "dark"];

export const theme = signal<Theme>(kept());

function kept(): Theme {
  const value = localStorage.getItem(KEY);
  return THEMES.find((one) => one === value) ?? "system";
}

export function startTheme(): void {
  effect(() => {
    if (theme.value === "system") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
    localStorage.setItem(KEY, theme.value);
  });
}

export function nextTheme(): void {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "system";
}
