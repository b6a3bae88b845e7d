class Runner < Formula
  desc "Runtime for HTTP handlers that are compiled to WebAssembly"
  homepage "https://runner.example"
  license "Apache-2.0"
  version "@VERSION@"

  on_macos do
    on_arm do
      url "@URL@/runner-@VERSION@-darwin-arm64.tar.gz"
      sha256 "@SHA256 darwin/arm64@"
    end
    on_intel do
      url "@URL@/runner-@VERSION@-darwin-amd64.tar.gz"
      sha256 "@SHA256 darwin/amd64@"
    end
  end
  on_linux do
    on_arm do
      url "@URL@/runner-@VERSION@-linux-arm64.tar.gz"
      sha256 "@SHA256 linux/arm64@"
    end
    on_intel do
      url "@URL@/runner-@VERSION@-linux-amd64.tar.gz"
      sha256 "@SHA256 linux/amd64@"
    end
  end

  def install
    bin.install "runner"
    man1.install Dir["man/*.1"]
    bash_completion.install "completions/runner.bash" => "runner"
    fish_completion.install "completions/runner.fish"
    zsh_completion.install "completions/runner.zsh" => "_runner"
  end

  test do
    system "#{bin}/runner", "new", "hello"
    system "#{bin}/runner", "check", "hello"
  end
end
