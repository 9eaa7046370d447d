# Homebrew: brew install --cask ./tilescope.rb
cask "tilescope" do
  version "$version"
  sha256 "$macos_sha256"

  url "$url/$macos"
  name "Tilescope"
  desc "Visual simulator of attention, tile by tile"
  homepage "$home"

  depends_on arch: :arm64

  app "Tilescope.app"
  binary "#{appdir}/Tilescope.app/Contents/MacOS/tilescope"
end
