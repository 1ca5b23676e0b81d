# Where a distribution would put things. `cmake --install build/release --prefix /usr` makes mount(8), fsck(8) and
# systemd find them.

set(bin ${CMAKE_RUNTIME_OUTPUT_DIRECTORY})
foreach(helper mount.varve umount.fuse.varve)
  configure_file(packaging/${helper} ${bin}/${helper} COPYONLY)
endforeach()

foreach(tool mkfs.varve fsck.varve)
  install(PROGRAMS ${bin}/${tool} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()
install(PROGRAMS ${bin}/varve DESTINATION ${CMAKE_INSTALL_BINDIR})
# Without what only a debugger reads: four fifths of them. In build/ it stays.
foreach(tool ${CMAKE_INSTALL_SBINDIR}/mkfs.varve ${CMAKE_INSTALL_SBINDIR}/fsck.varve ${CMAKE_INSTALL_BINDIR}/varve)
  install(CODE "execute_process(COMMAND ${CMAKE_STRIP} \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${tool}\")")
endforeach()
install(PROGRAMS packaging/mount.varve packaging/umount.fuse.varve DESTINATION ${CMAKE_INSTALL_SBINDIR})
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/links)
foreach(link mount.fuse.varve mkfs.fuse.varve fsck.fuse.varve)
  string(REPLACE ".fuse" "" target ${link})
  file(CREATE_LINK ${target} ${CMAKE_BINARY_DIR}/links/${link} SYMBOLIC)
  install(FILES ${CMAKE_BINARY_DIR}/links/${link} DESTINATION ${CMAKE_INSTALL_SBINDIR})
endforeach()

file(GLOB pages_1 docs/man/*.1)
file(GLOB pages_8 docs/man/*.8)
install(FILES ${pages_1} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${pages_8} DESTINATION ${CMAKE_INSTALL_MANDIR}/man8)

install(FILES packaging/varve@.service DESTINATION lib/systemd/system)
install(FILES packaging/fstab.example README.md LICENSE CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
foreach(command varve mkfs.varve fsck.varve mount.varve)
  install(FILES packaging/varve.bash-completion DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
          RENAME ${command})
endforeach()
